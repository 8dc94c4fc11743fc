import { queryOptions } from '@tanstack/react-query';
import { ApiError, answer, api, type Schemas } from './http';
import type { Role } from './me';
import { key, useChange } from './nouns';

export type Invitation = Schemas['Invitation'];
export type ConnectedApp = Schemas['ConnectedApp'];

export const invitationsQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'invitations'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/invitations', { params: { path: { ws } } })),
  });

export const appsQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'apps'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/apps', { params: { path: { ws } } })),
  });

export const useInvite = (ws: string) =>
  useChange(ws, 'invitations', (body: { email: string; role: Role }) =>
    answer(api.POST('/api/v1/workspaces/{ws}/invitations', { params: { path: { ws } }, body })),
  );

export const useRevokeInvitation = (ws: string) =>
  useChange(ws, 'invitations', (id: string) =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/invitations/{id}', { params: { path: { ws, id } } })),
  );

export const useSetRole = (ws: string) =>
  useChange(ws, 'members', ({ id, role }: { id: string; role: Role }) =>
    answer(
      api.PATCH('/api/v1/workspaces/{ws}/members/{id}', { params: { path: { ws, id } }, body: { role } }),
    ),
  );

export const useRemoveMember = (ws: string) =>
  useChange(ws, 'members', (id: string) =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/members/{id}', { params: { path: { ws, id } } })),
  );

export const useDisconnectApp = (ws: string) =>
  useChange(ws, 'apps', (id: string) =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/apps/{id}', { params: { path: { ws, id } } })),
  );

/** The page on which the person proves again who they are, if that is what the API asks for. */
export function confirmPath(error: unknown): string | undefined {
  if (!(error instanceof ApiError) || error.code !== 'confirm_first') return undefined;
  const path = (error.details as { path?: unknown } | null)?.path;
  return typeof path === 'string' && /^\/(account\/confirm|login\/company\/)/.test(path) ? path : undefined;
}
