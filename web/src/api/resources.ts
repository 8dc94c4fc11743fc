import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key, useChange } from './nouns';

export type Resource = Schemas['Resource'];
export type ResourceSummary = Schemas['ResourceSummary'];
export type ResourceDefinition = Schemas['ResourceDefinition'];
export type ResourceHolds = Schemas['ResourceHolds'];

export const resourcesQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'resources'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/resources', { params: { path: { ws } } })),
  });

export const resourceQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: key(ws, 'resources', id),
    queryFn: () =>
      answer(api.GET('/api/v1/workspaces/{ws}/resources/{id}', { params: { path: { ws, id } } })),
  });

export const useCreateResource = (ws: string) =>
  useChange(ws, 'resources', (body: ResourceDefinition) =>
    answer(api.POST('/api/v1/workspaces/{ws}/resources', { params: { path: { ws } }, body })),
  );

export const useRewriteResource = (ws: string, id: string) =>
  useChange(ws, 'resources', (body: ResourceDefinition) =>
    answer(api.PUT('/api/v1/workspaces/{ws}/resources/{id}', { params: { path: { ws, id } }, body })),
  );

export const useSwitchResource = (ws: string) =>
  useChange(ws, 'resources', ({ id, enabled }: { id: string; enabled: boolean }) =>
    answer(
      api.PATCH('/api/v1/workspaces/{ws}/resources/{id}', {
        params: { path: { ws, id } },
        body: { enabled },
      }),
    ),
  );

export const useDeleteResource = (ws: string) =>
  useChange(
    ws,
    'resources',
    (id: string) =>
      answer(api.DELETE('/api/v1/workspaces/{ws}/resources/{id}', { params: { path: { ws, id } } })),
    { gone: (id) => id },
  );

export const useSetServerResources = (ws: string) =>
  useChange(ws, 'servers', ({ id, resources }: { id: string } & Schemas['ResourceChoice']) =>
    answer(
      api.PUT('/api/v1/workspaces/{ws}/servers/{id}/resources', {
        params: { path: { ws, id } },
        body: { resources },
      }),
    ),
  );
