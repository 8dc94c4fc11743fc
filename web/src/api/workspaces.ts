import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { meQuery } from './me';
import { changed, key } from './nouns';

export type Workspace = Schemas['Workspace'];
export type WorkspaceChange = Schemas['WorkspaceChange'];
export type Overview = Schemas['Overview'];
export type Member = Schemas['Member'];
export type CallLog = Schemas['CallLog'];
export type HourlyCalls = Schemas['HourOfCalls'];

export const workspaceQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'workspace'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}', { params: { path: { ws } } })),
  });

export const overviewQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'overview'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/overview', { params: { path: { ws } } })),
    refetchInterval: 5_000,
  });

export const membersQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'members'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/members', { params: { path: { ws } } })),
  });

/** Milliseconds between two reads of a list of calls while it is looked at; less often once older pages are open. */
export const liveCalls = (query: { state: { data?: { pages: unknown[] } | undefined } }) =>
  (query.state.data?.pages.length ?? 1) > 1 ? 30_000 : 5_000;

export function useCreateWorkspace() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas['NewWorkspace']) => answer(api.POST('/api/v1/workspaces', { body })),
    onSuccess: () => client.invalidateQueries({ queryKey: meQuery.queryKey }),
  });
}

export function useDeleteWorkspace(ws: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas['WorkspaceDeletion']) =>
      answer(api.DELETE('/api/v1/workspaces/{ws}', { params: { path: { ws } }, body })),
    onSuccess: () => client.invalidateQueries({ queryKey: meQuery.queryKey }),
  });
}

export function useRestoreWorkspace() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (ws: string) =>
      answer(api.POST('/api/v1/workspaces/{ws}/restore', { params: { path: { ws } } })),
    onSuccess: () => client.invalidateQueries({ queryKey: meQuery.queryKey }),
  });
}

export function useChangeWorkspace(ws: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas['WorkspaceChange']) =>
      answer(api.PATCH('/api/v1/workspaces/{ws}', { params: { path: { ws } }, body })),
    onSuccess: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: meQuery.queryKey }),
        changed(client, ws, 'workspace'),
      ]),
  });
}
