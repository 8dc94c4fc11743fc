import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key, useChange } from './nouns';

export type SignIn = Schemas['SignInView'];
export type Sharing = Schemas['Sharing'];
export type SignInForm = Schemas['SignInForm'];

export const signInQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: key(ws, 'sources', id, 'sign-in'),
    queryFn: () =>
      answer(api.GET('/api/v1/workspaces/{ws}/sources/{id}/sign-in', { params: { path: { ws, id } } })),
  });

export const useSetSignIn = (ws: string, id: string) =>
  useChange(ws, 'sources', (body: SignInForm) =>
    answer(api.PUT('/api/v1/workspaces/{ws}/sources/{id}/sign-in', { params: { path: { ws, id } }, body })),
  );

export const useRemoveSignIn = (ws: string, id: string) =>
  useChange(ws, 'sources', () =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/sources/{id}/sign-in', { params: { path: { ws, id } } })),
  );

/** Begins to connect the workspace's account; the answer says where the browser goes on, if it has to. */
export const useConnect = (ws: string) =>
  useChange(
    ws,
    'sources',
    (id: string) =>
      answer(api.POST('/api/v1/workspaces/{ws}/sources/{id}/account', { params: { path: { ws, id } } })),
    { unless: (begun) => Boolean(begun.url) },
  );

export const useDisconnect = (ws: string, id: string) =>
  useChange(ws, 'sources', () =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/sources/{id}/account', { params: { path: { ws, id } } })),
  );
