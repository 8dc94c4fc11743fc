import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key, useChange } from './nouns';

export type SavedCall = Schemas['SavedCall'];
export type SavedExpectations = Schemas['SavedExpectations'];
export type NewSavedCall = Schemas['NewSavedCallBody'];

export const savedCallsQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: key(ws, 'saved-calls', id),
    queryFn: () =>
      answer(api.GET('/api/v1/workspaces/{ws}/servers/{id}/saved-calls', { params: { path: { ws, id } } })),
  });

/** Saves a call, or replaces the one with this id. */
export const useSaveCall = (ws: string, id: string) =>
  useChange(ws, 'saved-calls', ({ call, body }: { call?: string; body: NewSavedCall }) =>
    call === undefined
      ? answer(
          api.POST('/api/v1/workspaces/{ws}/servers/{id}/saved-calls', {
            params: { path: { ws, id } },
            body,
          }),
        )
      : answer(
          api.PUT('/api/v1/workspaces/{ws}/servers/{id}/saved-calls/{call}', {
            params: { path: { ws, id, call } },
            body,
          }),
        ),
  );

export const useDeleteSavedCall = (ws: string, id: string) =>
  useChange(ws, 'saved-calls', (call: string) =>
    answer(
      api.DELETE('/api/v1/workspaces/{ws}/servers/{id}/saved-calls/{call}', {
        params: { path: { ws, id, call } },
      }),
    ),
  );
