import { docs } from 'virtual:docs';
import { type EntryGroup, matches } from './components/palette';

/** Pages of the docs, and their headings, that match a query; without one, the pages. */
export function docEntries(query: string, open: (path: string, heading?: string) => void): EntryGroup {
  const found = docs.flatMap(({ slug, title, headings }) => {
    const page = { id: `doc:${slug}`, label: title, detail: 'Docs', open: () => open(slug) };
    if (query.trim() === '') return [page];
    const inside = headings
      .filter(({ text }) => matches(query, `${title} ${text}`) && !matches(query, title))
      .map(({ id, text }) => ({
        id: `doc:${slug}#${id}`,
        label: text,
        detail: title,
        open: () => open(slug, id),
      }));
    return matches(query, title) ? [page, ...inside] : inside;
  });
  return { label: 'Docs', entries: found.slice(0, 8) };
}
