import { readFileSync } from 'node:fs';
import { afterEach, expect, test } from 'vitest';
import { colorSchemeManager } from '../src/color-scheme';
import { cssVariables, theme } from '../src/theme';

const key = 'portolan-color-scheme';
const read = (path: string) => readFileSync(new URL(path, `file://${process.cwd()}/`), 'utf8');

afterEach(() => {
  // biome-ignore lint/suspicious/noDocumentCookie: as the page does it
  document.cookie = 'theme=; Path=/; Max-Age=0';
  window.localStorage.clear();
});

test('REVIEW-UX-BUG-21: the choice of the console is a cookie, which the server-rendered pages read', () => {
  const manager = colorSchemeManager();
  expect(manager.get('auto')).toBe('auto');
  expect(document.cookie).toBe('');
  manager.set('dark');
  expect(document.cookie).toBe('theme=dark');
  expect(window.localStorage.getItem(key)).toBe('dark');
  expect(colorSchemeManager().get('auto')).toBe('dark');
});

test('what the account page chose counts, and what was chosen before there was a cookie is kept', () => {
  window.localStorage.setItem(key, 'dark');
  expect(colorSchemeManager().get('auto')).toBe('dark');
  expect(document.cookie).toBe('theme=dark');
  // biome-ignore lint/suspicious/noDocumentCookie: as the account page does it
  document.cookie = 'theme=auto; Path=/';
  expect(colorSchemeManager().get('light')).toBe('auto');
});

/** Values of custom properties in a text of CSS. */
function properties(css: string): Record<string, string> {
  return Object.fromEntries([...css.matchAll(/(--[\w-]+): ([^;]+);/g)].map((found) => [found[1], found[2]]));
}

test('REVIEW-UX-3b 2: the server-rendered pages have the colours of the console', () => {
  const both = cssVariables(theme as never) as Record<'light' | 'dark', Record<string, string>>;
  const same: Record<string, string> = {
    '--ink': '--mantine-color-text',
    '--ink-soft': '--mantine-color-dimmed',
    '--paper': '--mantine-color-body',
    '--link': '--mantine-color-anchor',
    '--surface': '--surface',
    '--surface-sunk': '--surface-sunk',
    '--line': '--line',
    '--brass': '--accent',
    '--brass-ink': '--accent-ink',
    '--green': '--good',
    '--red': '--bad',
  };
  for (const scheme of ['light', 'dark'] as const) {
    const pages = properties(read(`../crates/site/assets/${scheme}.css`));
    for (const [ours, theirs] of Object.entries(same)) {
      expect(`${scheme} ${ours} ${pages[ours]}`).toBe(`${scheme} ${ours} ${both[scheme][theirs]}`);
    }
    expect(pages['--button']).toBe(theme.colors?.sea?.[scheme === 'light' ? 7 : 6]);
  }
});

/** Relative luminance and contrast of WCAG 2.2. */
function contrast(one: string, other: string): number {
  const luminance = (hex: string) => {
    const [red, green, blue] = [1, 3, 5]
      .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
      .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)) as [
      number,
      number,
      number,
    ];
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

test('REVIEW-UX-3b 6: borders of controls and the focus ring of these pages are seen (WCAG 1.4.11: 3:1), text is read (4.5:1)', () => {
  for (const scheme of ['light', 'dark'] as const) {
    const pages = properties(read(`../crates/site/assets/${scheme}.css`));
    const value = (name: string) => pages[name] ?? 'missing';
    for (const ground of ['--surface', '--surface-sunk', '--paper']) {
      for (const drawn of ['--line-strong', '--focus']) {
        expect(
          contrast(value(drawn), value(ground)),
          `${scheme} ${drawn} on ${ground}`,
        ).toBeGreaterThanOrEqual(3);
      }
      for (const written of ['--ink', '--ink-soft', '--link', '--red']) {
        expect(
          contrast(value(written), value(ground)),
          `${scheme} ${written} on ${ground}`,
        ).toBeGreaterThanOrEqual(4.5);
      }
    }
    for (const [text, ground] of [
      ['--on-button', '--button'],
      ['--on-red', '--red'],
      ['--ink', '--tint'],
      ['--link', '--tint'],
    ] as const) {
      expect(contrast(value(text), value(ground)), `${scheme} ${text} on ${ground}`).toBeGreaterThanOrEqual(
        4.5,
      );
    }
  }
});

test('REVIEW-UX-3b 2: the server-rendered pages load the fonts of the console, under the names that its build gives them', () => {
  const plain = (text: string) => text.replace(/\s+/g, '').replaceAll("'", '"');
  const pages = plain(read('../crates/site/assets/fonts.css'));
  const main = read('src/main.tsx');
  const packages = [...main.matchAll(/import '(@fontsource-variable\/[\w-]+\/wght\.css)'/g)].map(
    (found) => found[1],
  );
  expect(packages.length).toBe(1);
  const sheets = packages.map((name) => read(`node_modules/${name}`)).concat(read('src/fonts.css'));
  for (const sheet of sheets) {
    const faces = [...sheet.matchAll(/@font-face \{.*?\n\}/gs)];
    expect(faces.length).toBeGreaterThan(5);
    for (const [face] of faces) {
      const served = face.replace(/(\.|@fontsource\/[\w-]+)\/files\//, '/assets/');
      expect(pages).toContain(plain(served));
    }
  }
});
