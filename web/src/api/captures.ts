import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key, useChange } from './nouns';

export type ServerCapture = Schemas['ServerCapture'];
export type RevealedContent = Schemas['RevealedContent'];
export type CapturedText = Schemas['CapturedText'];

export const captureQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: key(ws, 'captures', id),
    queryFn: () =>
      answer(api.GET('/api/v1/workspaces/{ws}/servers/{id}/capture', { params: { path: { ws, id } } })),
  });

export const useSetCapture = (ws: string, id: string) =>
  useChange(ws, 'captures', (body: ServerCapture) =>
    answer(api.PUT('/api/v1/workspaces/{ws}/servers/{id}/capture', { params: { path: { ws, id } }, body })),
  );

export const useDeleteCaptured = (ws: string, id: string) =>
  useChange(ws, 'captures', () =>
    answer(
      api.DELETE('/api/v1/workspaces/{ws}/servers/{id}/capture/content', { params: { path: { ws, id } } }),
    ),
  );

/** Reveals the content of a call. It is the state of the page alone, and in no cache. */
export function useReveal(ws: string, id: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () =>
      answer(api.POST('/api/v1/workspaces/{ws}/calls/{id}/reveal', { params: { path: { ws, id } } })),
    gcTime: 0,
    onSuccess: () => void client.invalidateQueries({ queryKey: key(ws, 'audit') }),
  });
}
