import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';

export type SignIn = Schemas['SignInView'];
export type Sharing = Schemas['Sharing'];
export type SignInForm = Schemas['SignInForm'];

export const signInQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: [ws, 'sources', id, 'sign-in'],
    queryFn: () =>
      answer(api.GET('/api/v1/workspaces/{ws}/sources/{id}/sign-in', { params: { path: { ws, id } } })),
  });

/** Fetches all data of the workspace again, because access to tools changes with the sign-in. */
function useRefresh(ws: string) {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: [ws] });
}

export function useSetSignIn(ws: string, id: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (body: SignInForm) =>
      answer(api.PUT('/api/v1/workspaces/{ws}/sources/{id}/sign-in', { params: { path: { ws, id } }, body })),
    onSuccess: refresh,
  });
}

export function useRemoveSignIn(ws: string, id: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: () =>
      answer(api.DELETE('/api/v1/workspaces/{ws}/sources/{id}/sign-in', { params: { path: { ws, id } } })),
    onSuccess: refresh,
  });
}

/** Begins to connect the workspace's account; the answer says where the browser goes on, if it has to. */
export function useConnect(ws: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (id: string) =>
      answer(api.POST('/api/v1/workspaces/{ws}/sources/{id}/account', { params: { path: { ws, id } } })),
    onSuccess: (begun) => (begun.url ? undefined : refresh()),
  });
}

export function useDisconnect(ws: string, id: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: () =>
      answer(api.DELETE('/api/v1/workspaces/{ws}/sources/{id}/account', { params: { path: { ws, id } } })),
    onSuccess: refresh,
  });
}
