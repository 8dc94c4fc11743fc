import { type QueryClient, useMutation, useQueryClient } from '@tanstack/react-query';

const publishes = [
  'servers',
  'tools',
  'prompts',
  'resources',
  'overview',
  'configuration',
  'trash',
  'audit',
] as const;
const people = ['members', 'invitations', 'apps', 'audit'] as const;
const credentials = ['api-keys', 'service-accounts', 'audit'] as const;
const clients = ['clients', 'registered-clients', 'apps', 'audit'] as const;

/**
 * The nouns of a workspace, and for each the nouns that show it.
 * After a change of a noun, the queries of those are read again.
 * `limits` and `security` are absent from their own rows: a change answers with their new state.
 */
export const shownIn = {
  'access-tokens': ['access-tokens', 'audit'],
  alerts: ['alerts', 'audit'],
  'api-keys': credentials,
  apps: people,
  audit: [],
  'call-views': ['call-views', 'audit'],
  calls: [],
  captures: ['captures', 'audit'],
  clients,
  configuration: [],
  connects: [],
  insights: [],
  invitations: people,
  limits: ['audit'],
  members: people,
  overview: [],
  prompts: ['prompts', 'servers', 'configuration', 'trash', 'audit'],
  'registered-clients': clients,
  resources: ['resources', 'servers', 'configuration', 'trash', 'audit'],
  'saved-calls': ['saved-calls', 'audit'],
  search: [],
  sessions: ['sessions', 'audit'],
  security: ['audit'],
  // Programs are bound to the address of a server.
  servers: [...publishes, 'apps', 'api-keys', 'service-accounts'],
  'service-accounts': credentials,
  'single-sign-on': ['single-sign-on', 'audit'],
  sources: [...publishes, 'sources'],
  tools: ['tools', 'sources', 'servers', 'overview', 'configuration', 'audit'],
  trash: [],
  'trusted-pipelines': ['trusted-pipelines', 'audit'],
  webhooks: ['webhooks', 'audit'],
  workspace: ['workspace', 'audit'],
} as const satisfies Record<string, readonly string[]>;

export type Noun = keyof typeof shownIn;

/** The key of a query: workspace, noun, then the id and what of it is read. */
export const key = <Rest extends readonly string[]>(ws: string, noun: Noun, ...rest: Rest) =>
  [ws, noun, ...rest] as const;

/**
 * Marks as stale what shows a changed noun.
 * `gone` is the id of a deleted thing: its own page is about to be left, and is not read again.
 */
export function changed(client: QueryClient, ws: string, noun: Noun, gone?: string): Promise<unknown> {
  return Promise.all(
    shownIn[noun].map((one) =>
      client.invalidateQueries({
        queryKey: key(ws, one),
        predicate: (query) => gone === undefined || !query.queryKey.includes(gone),
      }),
    ),
  );
}

/** A change of a noun. It ends when the open queries that show the noun are read again. */
export function useChange<Answer, Input = void>(
  ws: string,
  noun: Noun,
  change: (input: Input) => Promise<Answer>,
  {
    gone,
    alsoFailed = false,
    unless,
  }: {
    /** The id of the thing that the change deletes. */
    gone?: (input: Input) => string;
    /** A failed change leaves traces too. */
    alsoFailed?: boolean;
    /** An answer after which nothing differs. */
    unless?: (answer: Answer) => boolean;
  } = {},
) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: (answer, error, input) => {
      if (error ? !alsoFailed : unless?.(answer as Answer)) return undefined;
      return changed(client, ws, noun, gone?.(input));
    },
  });
}
