import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key, useChange } from './nouns';

export type AccessToken = Schemas['AccessToken'];
export type ApiScope = Schemas['ApiScope'];
export type NewPersonalToken = Schemas['NewPersonalToken'];
export type NewCommandToken = Schemas['NewCommandToken'];
export type NewWorkspaceToken = Schemas['NewWorkspaceToken'];

/** The scopes of tokens with what each permits, in the order of the API's document. */
export const scopes: Record<ApiScope, string> = {
  'workspace:read': 'Read the workspace, limits, overview, webhooks and alert rules',
  'workspace:write': 'Change the name, limits, the default server, webhooks and alert rules',
  'webhooks:write': 'Create, change and delete webhook endpoints by a file of configuration',
  'registry:read': 'Read sources, tools, prompts, resources and servers',
  'registry:write': 'Change sources, tools, prompts, resources and servers',
  'credentials:write': 'Set credentials, sign-ins and addresses of sources',
  'access:read': 'Read members, invitations, keys, AI clients and sessions',
  'access:write': 'Take access away: revoke keys, disconnect apps, block clients, end sessions',
  'calls:read': 'Read the call log, insights and connection diagnostics',
  'tools:call': 'Call tools',
  'audit:read': 'Read the audit log',
};

export const workspaceTokensQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'access-tokens'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/access-tokens', { params: { path: { ws } } })),
  });

export const useCreateWorkspaceToken = (ws: string) =>
  useChange(ws, 'access-tokens', (body: NewWorkspaceToken) =>
    answer(api.POST('/api/v1/workspaces/{ws}/access-tokens', { params: { path: { ws } }, body })),
  );

export const useRevokeWorkspaceToken = (ws: string) =>
  useChange(ws, 'access-tokens', (id: string) =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/access-tokens/{id}', { params: { path: { ws, id } } })),
  );

export const personalTokensQuery = queryOptions({
  queryKey: ['me', 'access-tokens'],
  queryFn: () => answer(api.GET('/api/v1/me/access-tokens')),
});

/** A change of the person's own tokens. It ends when their list is read again. */
function useOwnChange<Answer, Input>(change: (input: Input) => Promise<Answer>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => client.invalidateQueries({ queryKey: personalTokensQuery.queryKey }),
  });
}

export const useCreatePersonalToken = () =>
  useOwnChange((body: NewPersonalToken) => answer(api.POST('/api/v1/me/access-tokens', { body })));

/** A token that a command gets by the code of the answer. */
export const useCreateCommandToken = () =>
  useOwnChange((body: NewCommandToken) => answer(api.POST('/api/v1/me/command-tokens', { body })));

export const useRevokePersonalToken = () =>
  useOwnChange((id: string) =>
    answer(api.DELETE('/api/v1/me/access-tokens/{id}', { params: { path: { id } } })),
  );
