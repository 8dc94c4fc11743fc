/** What a server publishes beside tools. */
export type PublishedKind = 'prompt' | 'resource';

/** Words and addresses of each kind. */
export const published = {
  prompt: {
    one: 'prompt',
    plural: 'prompts',
    many: 'Prompts',
    saved: 'Prompt saved. Connected clients see the change.',
    /** What a server calls it: a name. */
    label: 'Published name',
    to: { list: '/w/$ws/prompts', create: '/w/$ws/prompts/new', page: '/w/$ws/prompts/$id' },
  },
  resource: {
    one: 'resource',
    plural: 'resources',
    many: 'Resources',
    saved: 'Resource saved. Subscribed clients are notified.',
    /** What a server calls it: a URI. */
    label: 'Published URI',
    to: { list: '/w/$ws/resources', create: '/w/$ws/resources/new', page: '/w/$ws/resources/$id' },
  },
} as const;
