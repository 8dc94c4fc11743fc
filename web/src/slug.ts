/** The rules of `crates/model/src/slug.rs`, anticipated; the server decides (it also knows reserved words). */
export function suggestSlug(name: string): string {
  return name
    .normalize('NFKD')
    .replaceAll(/[\u0300-\u036f]/g, '')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 40)
    .replace(/-+$/, '');
}

/** The field of a refusal that is about the address. */
export const slugField = ({ code, field }: { code: string; field?: string | undefined }) =>
  code.startsWith('slug_') ? 'slug' : field;

export function slugFault(slug: string): string | null {
  if (slug.length < 3 || slug.length > 40) return 'Use 3 to 40 characters.';
  if (!/^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/.test(slug)) {
    return 'Use lower-case letters, digits and hyphens, and begin and end with a letter or digit.';
  }
  if (slug.slice(2, 4) === '--') return 'Two hyphens cannot follow the first two characters.';
  return null;
}
