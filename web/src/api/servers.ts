import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key, useChange } from './nouns';
import { liveCalls } from './workspaces';

export type Server = Schemas['Server'];
export type ServerDetail = Schemas['ServerDetail'];
export type ServerTool = Schemas['ServerTool'];
export type ServerWarning = Schemas['ClientWarning'];
export type ClientConnection = Schemas['ClientConnection'];
export type Connection = Schemas['Connection'];

export const serversQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'servers'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/servers', { params: { path: { ws } } })),
  });

export const serverQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: key(ws, 'servers', id),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/servers/{id}', { params: { path: { ws, id } } })),
  });

export const connectionQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: key(ws, 'servers', id, 'connection'),
    queryFn: () =>
      answer(api.GET('/api/v1/workspaces/{ws}/servers/{id}/connection', { params: { path: { ws, id } } })),
  });

export const serverCallsQuery = (ws: string, id: string) =>
  infiniteQueryOptions({
    queryKey: key(ws, 'servers', id, 'calls'),
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

export const useCreateServer = (ws: string) =>
  useChange(ws, 'servers', (body: Schemas['NewServer']) =>
    answer(api.POST('/api/v1/workspaces/{ws}/servers', { params: { path: { ws } }, body })),
  );

export const useUpdateServer = (ws: string, id: string) =>
  useChange(ws, 'servers', (body: Schemas['ServerChange']) =>
    answer(api.PATCH('/api/v1/workspaces/{ws}/servers/{id}', { params: { path: { ws, id } }, body })),
  );

export const useDeleteServer = (ws: string) =>
  useChange(
    ws,
    'servers',
    (id: string) =>
      answer(api.DELETE('/api/v1/workspaces/{ws}/servers/{id}', { params: { path: { ws, id } } })),
    { gone: (id) => id },
  );

export const useSetServerTools = (ws: string) =>
  useChange(ws, 'servers', ({ id, tools }: { id: string } & Schemas['ToolChoice']) =>
    answer(
      api.PUT('/api/v1/workspaces/{ws}/servers/{id}/tools', {
        params: { path: { ws, id } },
        body: { tools },
      }),
    ),
  );

/** Where the workspace's own URL leads; null is nowhere. */
export const useChooseDefault = (ws: string) =>
  useChange(ws, 'servers', (server_id: string | null) =>
    answer(
      api.PUT('/api/v1/workspaces/{ws}/default-server', { params: { path: { ws } }, body: { server_id } }),
    ),
  );

export const useSetPublished = (ws: string) =>
  useChange(ws, 'servers', ({ id, published }: { id: string; published: boolean }) => {
    const params = { path: { ws, id } };
    return published
      ? answer(api.POST('/api/v1/workspaces/{ws}/servers/{id}/publish', { params }))
      : answer(api.POST('/api/v1/workspaces/{ws}/servers/{id}/pause', { params }));
  });
