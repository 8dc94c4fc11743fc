declare module 'virtual:docs' {
  /** A page of /docs. */
  export interface Doc {
    /** Its path below /docs. */
    slug: string;
    group: 'Use' | 'Operate' | 'Develop';
    title: string;
    /** Headings of the second and third level. */
    headings: { id: string; text: string }[];
    /** The page as HTML, rendered from the repository's Markdown by scripts/docs.mjs. */
    load: () => Promise<{ default: string }>;
  }
  export const docs: readonly Doc[];
}
