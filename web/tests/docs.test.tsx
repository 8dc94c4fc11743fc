import { docs } from 'virtual:docs';
import { screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test, vi } from 'vitest';
import { open } from './page';
import { serve } from './server';

vi.setConfig({ testTimeout: 30_000 });
const patient = { timeout: 20_000 };

const sources = import.meta.glob<string>('../src/**/*.tsx', {
  query: '?raw',
  import: 'default',
  eager: true,
});

test('every link inside the docs leads to a page and a heading of it', async () => {
  const ids = new Map<string, Set<string>>();
  const links: [string, string][] = [];
  for (const doc of docs) {
    const { default: html } = await doc.load();
    ids.set(doc.slug, new Set([...html.matchAll(/<h\d id="([^"]+)"/g)].map((one) => one[1] ?? '')));
    for (const [, href] of html.matchAll(/<a href="([^"]+)"/g)) links.push([doc.slug, href ?? '']);
  }
  const broken = links.filter(([slug, href]) => {
    if (/^https?:|^mailto:/.test(href)) return false;
    const [page, hash] = href.startsWith('#')
      ? [slug, href.slice(1)]
      : href.slice('/docs/'.length).split('#');
    const known = ids.get(page ?? '');
    return !known || (hash !== undefined && !known.has(hash));
  });
  expect(broken).toEqual([]);
  expect(links.length).toBeGreaterThan(20);
});

test('the pictures of the docs are files of the build, with words and a size', async () => {
  const pages = await Promise.all(
    docs.map(async ({ slug, load }) => ({ slug, html: (await load()).default })),
  );
  const pictures = pages.flatMap(({ slug, html }) =>
    [...html.matchAll(/<img ([^>]*)>/g)].map((one) => ({ slug, attributes: one[1] ?? '' })),
  );
  for (const { attributes } of pictures) {
    expect(attributes).toMatch(/^src="[^"]+\.png[^"]*" alt="[^"]{10,}" width="\d+" height="\d+"/);
  }
  const illustrated = [...new Set(pictures.map(({ slug }) => slug))];
  expect(illustrated.sort()).toEqual(['api', 'configuration-as-code', 'console', 'playground', 'webhooks']);
});

test('every help link of the console leads to a page and a heading of it', () => {
  const helps = Object.entries(sources).flatMap(([file, text]) =>
    [...text.matchAll(/\bhelp="([^"]+)"|<HelpLink to="([^"]+)"/g)].map((one) => [
      file,
      one[1] ?? one[2] ?? '',
    ]),
  );
  const broken = helps.filter(([, to]) => {
    const [slug, hash] = (to ?? '').split('#');
    const doc = docs.find((one) => one.slug === slug);
    return !doc || (hash !== undefined && !doc.headings.some(({ id }) => id === hash));
  });
  expect(broken).toEqual([]);
  expect(helps.length).toBeGreaterThan(10);
});

test('the docs need no sign-in: a page is read, its links lead on, and the search finds a heading', async () => {
  const received = serve({});
  const user = userEvent.setup();
  const { router } = open('/docs');
  await screen.findByRole('heading', { level: 1, name: 'The console' }, patient);
  await user.click((await screen.findAllByRole('link', { name: 'attach' }, patient))[0] as HTMLElement);
  await screen.findByRole('heading', { level: 1, name: 'Attach a private server' }, patient);
  await user.keyboard('/');
  await user.type(await screen.findByRole('textbox', { name: /^Search pages/ }, patient), 'token budget');
  await screen.findByRole('option', { name: /Token budget/ }, patient);
  await user.keyboard('{Enter}');
  await waitFor(() => expect(router.state.location.href).toBe('/docs/console#token-budget'));
  expect(received).toEqual([]);
});

test('a page of the docs that does not exist says so', async () => {
  serve({});
  open('/docs/nowhere');
  expect(await screen.findByText(/doesn’t exist|not found|no page/i, undefined, patient)).toBeTruthy();
});
