import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { liveCalls } from './workspaces';

export type Server = Schemas['Server'];
export type ServerDetail = Schemas['ServerDetail'];
export type ServerTool = Schemas['ServerTool'];
export type ServerWarning = Schemas['ClientWarning'];
export type ClientConnection = Schemas['ClientConnection'];
export type Connection = Schemas['Connection'];

export const serversQuery = (ws: string) =>
  queryOptions({
    queryKey: [ws, 'servers'],
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/servers', { params: { path: { ws } } })),
  });

export const serverQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: [ws, 'servers', id],
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/servers/{id}', { params: { path: { ws, id } } })),
  });

export const connectionQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: [ws, 'servers', id, 'connection'],
    queryFn: () =>
      answer(api.GET('/api/v1/workspaces/{ws}/servers/{id}/connection', { params: { path: { ws, id } } })),
  });

export const serverCallsQuery = (ws: string, id: string) =>
  infiniteQueryOptions({
    queryKey: [ws, 'servers', id, 'calls'],
    queryFn: ({ pageParam }) =>
      answer(
        api.GET('/api/v1/workspaces/{ws}/servers/{id}/calls', {
          params: { path: { ws, id }, query: { cursor: pageParam } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    refetchInterval: liveCalls,
  });

function useRefresh(ws: string) {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: [ws] });
}

export function useCreateServer(ws: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (body: Schemas['NewServer']) =>
      answer(api.POST('/api/v1/workspaces/{ws}/servers', { params: { path: { ws } }, body })),
    onSuccess: refresh,
  });
}

export function useUpdateServer(ws: string, id: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (body: Schemas['ServerChange']) =>
      answer(api.PATCH('/api/v1/workspaces/{ws}/servers/{id}', { params: { path: { ws, id } }, body })),
    onSuccess: refresh,
  });
}

export function useDeleteServer(ws: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      answer(api.DELETE('/api/v1/workspaces/{ws}/servers/{id}', { params: { path: { ws, id } } })),
    // Does not fetch the deleted item again: the user is about to leave its page.
    onSuccess: (_, id) =>
      client.invalidateQueries({ queryKey: [ws], predicate: (query) => !query.queryKey.includes(id) }),
  });
}

export function useSetServerTools(ws: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: ({ id, tools }: { id: string } & Schemas['ToolChoice']) =>
      answer(
        api.PUT('/api/v1/workspaces/{ws}/servers/{id}/tools', {
          params: { path: { ws, id } },
          body: { tools },
        }),
      ),
    onSuccess: refresh,
  });
}

/** Where the workspace's own URL leads; null is nowhere. */
export function useChooseDefault(ws: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (server_id: string | null) =>
      answer(
        api.PUT('/api/v1/workspaces/{ws}/default-server', { params: { path: { ws } }, body: { server_id } }),
      ),
    onSuccess: refresh,
  });
}

export function useSetPublished(ws: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: ({ id, published }: { id: string; published: boolean }) => {
      const params = { path: { ws, id } };
      return published
        ? answer(api.POST('/api/v1/workspaces/{ws}/servers/{id}/publish', { params }))
        : answer(api.POST('/api/v1/workspaces/{ws}/servers/{id}/pause', { params }));
    },
    onSuccess: refresh,
  });
}
