import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { ApiError, answer, api, type Schemas } from './http';
import type { Role } from './me';

export type Invitation = Schemas['Invitation'];
export type ConnectedApp = Schemas['ConnectedApp'];

export const invitationsQuery = (ws: string) =>
  queryOptions({
    queryKey: [ws, 'invitations'],
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/invitations', { params: { path: { ws } } })),
  });

export const appsQuery = (ws: string) =>
  queryOptions({
    queryKey: [ws, 'apps'],
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/apps', { params: { path: { ws } } })),
  });

/** After each change of who belongs here, everything that names people is read again. */
function usePeopleChange<T, Done>(ws: string, change: (input: T) => Promise<Done>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () =>
      Promise.all(
        ['members', 'invitations', 'apps', 'audit'].map((noun) =>
          client.invalidateQueries({ queryKey: [ws, noun] }),
        ),
      ),
  });
}

export const useInvite = (ws: string) =>
  usePeopleChange(ws, (body: { email: string; role: Role }) =>
    answer(api.POST('/api/v1/workspaces/{ws}/invitations', { params: { path: { ws } }, body })),
  );

export const useRevokeInvitation = (ws: string) =>
  usePeopleChange(ws, (id: string) =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/invitations/{id}', { params: { path: { ws, id } } })),
  );

export const useSetRole = (ws: string) =>
  usePeopleChange(ws, ({ id, role }: { id: string; role: Role }) =>
    answer(
      api.PATCH('/api/v1/workspaces/{ws}/members/{id}', { params: { path: { ws, id } }, body: { role } }),
    ),
  );

export const useRemoveMember = (ws: string) =>
  usePeopleChange(ws, (id: string) =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/members/{id}', { params: { path: { ws, id } } })),
  );

export const useDisconnectApp = (ws: string) =>
  usePeopleChange(ws, (id: string) =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/apps/{id}', { params: { path: { ws, id } } })),
  );

/** The page on which the person proves again who they are, if that is what the API asks for. */
export function confirmPath(error: unknown): string | undefined {
  if (!(error instanceof ApiError) || error.code !== 'confirm_first') return undefined;
  const path = (error.details as { path?: unknown } | null)?.path;
  return typeof path === 'string' && /^\/(account\/confirm|login\/company\/)/.test(path) ? path : undefined;
}
