/** A search parameter as text: one that looks like a number arrives as a number. */
export const text = (value: unknown) =>
  typeof value === 'number' ? String(value) : typeof value === 'string' && value !== '' ? value : undefined;

/** The search parameters that filter a list of tools. */
export const narrowed = (search: Record<string, unknown>): { q?: string; show?: string } => ({
  q: text(search.q),
  show: text(search.show),
});
