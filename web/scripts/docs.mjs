// The pages of /docs: Markdown of the repository, rendered when the console is built.
import { existsSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Marked } from 'marked';

const folder = fileURLToPath(new URL('../../docs', import.meta.url));
const repository = 'https://github.com/portolan/portolan/blob/main';

/** Files in the order of the menu. A file that a build does not have is left out. */
const pages = [
  ['console', 'Use'],
  ['connect', 'Use'],
  ['playground', 'Use'],
  ['attach', 'Use'],
  ['api', 'Use'],
  ['configuration-as-code', 'Use'],
  ['webhooks', 'Use'],
  ['events', 'Use'],
  ['bridge', 'Use'],
  ['guides/debug-a-connection', 'Use'],
  ['design/clients', 'Use'],
  ['glossary', 'Use'],
  ['operating', 'Operate'],
  ['configuration', 'Operate'],
  ['performance', 'Operate'],
  ['threat-model', 'Operate'],
  ['guides/add-an-endpoint', 'Develop'],
  ['guides/add-a-table', 'Develop'],
  ['guides/add-a-tool-source', 'Develop'],
  ['guides/change-a-rule-of-the-protocol', 'Develop'],
]
  .map(([slug, group]) => ({ slug, group, path: `${folder}/${slug}.md` }))
  .filter(({ path }) => existsSync(path));
const slugs = new Set(pages.map(({ slug }) => slug));

/** The id of a heading, as the links of the repository's pages have it. */
const anchor = (text) =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');

const escaped = (text) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** A link of a page: to another page, or to a file of the repository. */
function target(slug, href) {
  if (/^[a-z]+:|^#/.test(href)) return href;
  const [path, fragment] = href.split('#');
  const file = posix.normalize(posix.join('docs', posix.dirname(slug), path));
  const page = file.replace(/^docs\//, '').replace(/\.md$/, '');
  const to = slugs.has(page) ? `/docs/${page}` : `${repository}/${file}`;
  return fragment ? `${to}#${fragment}` : to;
}

/** Width and height of a PNG, from its first chunk. */
function size(file) {
  const bytes = readFileSync(file);
  if (bytes.toString('latin1', 12, 16) !== 'IHDR') throw new Error(`${file} is no PNG`);
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

/**
 * A page as HTML, with its title, its headings of the second and third level, and the files of its
 * pictures. The HTML names a picture by its place in that list.
 */
export function rendered({ slug, path }) {
  let title = slug;
  const headings = [];
  const pictures = [];
  const used = new Map();
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth, text }) {
        const inner = this.parser.parseInline(tokens);
        const plain = text.replace(/[`*]|\[([^\]]*)\]\([^)]*\)/g, '$1');
        if (depth === 1) {
          title = plain;
          return '';
        }
        const base = anchor(plain);
        const count = used.get(base) ?? 0;
        used.set(base, count + 1);
        const id = count === 0 ? base : `${base}-${count}`;
        if (depth <= 3) headings.push({ id, text: plain });
        return `<h${depth} id="${escaped(id)}" tabindex="-1">${inner}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const to = target(slug, href);
        const outside = /^https?:/.test(to) ? ' rel="noreferrer"' : '';
        return `<a href="${escaped(to)}"${outside}>${this.parser.parseInline(tokens)}</a>`;
      },
      image({ href, text }) {
        const file = posix.join(folder, posix.dirname(slug), href);
        const { width, height } = size(file);
        const place = pictures.push(file) - 1;
        return `<img src="picture:${place}" alt="${escaped(text)}" width="${width}" height="${height}" loading="lazy">`;
      },
      html({ text }) {
        return escaped(text);
      },
      code({ text }) {
        return `<div data-code><pre tabindex="0" role="group" aria-label="Code"><code>${escaped(text)}</code></pre><button type="button" data-copy>Copy</button></div>\n`;
      },
      table({ header, rows }) {
        const cells = (row, tag) =>
          row
            .map(({ text, tokens }) => {
              // A head without words is no head for a screen reader.
              const name = text === '' ? 'td' : tag;
              return `<${name}>${this.parser.parseInline(tokens)}</${name}>`;
            })
            .join('');
        const body = rows.map((row) => `<tr>${cells(row, 'td')}</tr>`).join('\n');
        return `<div data-table tabindex="0" role="group" aria-label="Table"><table><thead><tr>${cells(header, 'th')}</tr></thead><tbody>${body}</tbody></table></div>\n`;
      },
    },
  });
  const html = marked.parse(readFileSync(path, 'utf8'));
  return { html, title, headings, pictures };
}

const index = 'virtual:docs';
const page = 'virtual:doc/';

/** Serves `virtual:docs`, the list of pages. Each page is a chunk of its own. */
export function docs() {
  return {
    name: 'docs',
    resolveId: (id) => (id === index || id.startsWith(page) ? `\0${id}` : null),
    load(id) {
      if (id === `\0${index}`) {
        const items = pages.map((one) => {
          this.addWatchFile?.(one.path);
          const { title, headings } = rendered(one);
          const about = JSON.stringify({ slug: one.slug, group: one.group, title, headings });
          return `{ ...${about}, load: () => import(${JSON.stringify(page + one.slug)}) }`;
        });
        return `export const docs = [${items.join(',\n')}];`;
      }
      const one = pages.find(({ slug }) => id === `\0${page}${slug}`);
      if (!one) return null;
      // The build gives each picture a name with a digest.
      const { html, pictures } = rendered(one);
      const imports = pictures.map((file, place) => `import picture${place} from ${JSON.stringify(file)};`);
      const parts = html
        .split(/"picture:(\d+)"/)
        .map((part, place) => (place % 2 === 0 ? JSON.stringify(part) : `JSON.stringify(picture${part})`));
      return `${imports.join('\n')}\nexport default ${parts.join(' + ')};`;
    },
  };
}

export { pages };
