import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key, useChange } from './nouns';

export type CallView = Schemas['CallView'];
export type NewCallView = Schemas['NewCallViewBody'];

export const callViewsQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'call-views'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/call-views', { params: { path: { ws } } })),
  });

/** Saves a view, or replaces the one with this id. */
export const useSaveCallView = (ws: string) =>
  useChange(ws, 'call-views', ({ id, body }: { id?: string; body: NewCallView }) =>
    id === undefined
      ? answer(api.POST('/api/v1/workspaces/{ws}/call-views', { params: { path: { ws } }, body }))
      : answer(api.PUT('/api/v1/workspaces/{ws}/call-views/{id}', { params: { path: { ws, id } }, body })),
  );

export const useDeleteCallView = (ws: string) =>
  useChange(ws, 'call-views', (id: string) =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/call-views/{id}', { params: { path: { ws, id } } })),
  );
