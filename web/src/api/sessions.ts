import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key, useChange } from './nouns';

export type OpenSession = Schemas['OpenSession'];
export type SessionEvent = Schemas['SessionEvent'];

/** The nodes are asked again and again while the page is open, and only then. */
const live = 5_000;

export const sessionsQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'sessions'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/sessions', { params: { path: { ws } } })),
    refetchInterval: live,
  });

export const timelineQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: key(ws, 'sessions', id),
    queryFn: () =>
      answer(api.GET('/api/v1/workspaces/{ws}/sessions/{id}/timeline', { params: { path: { ws, id } } })),
    refetchInterval: live,
  });

export const useEndSession = (ws: string) =>
  useChange(
    ws,
    'sessions',
    (id: string) =>
      answer(api.DELETE('/api/v1/workspaces/{ws}/sessions/{id}', { params: { path: { ws, id } } })),
    { gone: (id) => id },
  );
