/** The kinds of things that a server publishes beside tools. */
export type PublishedKind = 'prompt' | 'resource';

/** Words and addresses of each kind. */
export const published = {
  prompt: {
    one: 'prompt',
    plural: 'prompts',
    many: 'Prompts',
    saved: 'Prompt saved. Connected clients see the change.',
    /** The published identifier: a name. */
    label: 'Published name',
    to: { list: '/w/$ws/prompts', create: '/w/$ws/prompts/new', page: '/w/$ws/prompts/$id' },
  },
  resource: {
    one: 'resource',
    plural: 'resources',
    many: 'Resources',
    saved: 'Resource saved. Subscribed clients are notified.',
    /** The published identifier: a URI. */
    label: 'Published URI',
    to: { list: '/w/$ws/resources', create: '/w/$ws/resources/new', page: '/w/$ws/resources/$id' },
  },
} as const;
