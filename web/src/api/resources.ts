import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';

export type Resource = Schemas['Resource'];
export type ResourceSummary = Schemas['ResourceSummary'];
export type ResourceDefinition = Schemas['ResourceDefinition'];
export type ResourceHolds = Schemas['ResourceHolds'];

export const resourcesQuery = (ws: string) =>
  queryOptions({
    queryKey: [ws, 'resources'],
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/resources', { params: { path: { ws } } })),
  });

export const resourceQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: [ws, 'resources', id],
    queryFn: () =>
      answer(api.GET('/api/v1/workspaces/{ws}/resources/{id}', { params: { path: { ws, id } } })),
  });

function useRefresh(ws: string) {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: [ws] });
}

export function useCreateResource(ws: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (body: ResourceDefinition) =>
      answer(api.POST('/api/v1/workspaces/{ws}/resources', { params: { path: { ws } }, body })),
    onSuccess: refresh,
  });
}

export function useRewriteResource(ws: string, id: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (body: ResourceDefinition) =>
      answer(api.PUT('/api/v1/workspaces/{ws}/resources/{id}', { params: { path: { ws, id } }, body })),
    onSuccess: refresh,
  });
}

export function useSwitchResource(ws: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: ({ id, enabled }: { id: string; enabled: boolean }) =>
      answer(
        api.PATCH('/api/v1/workspaces/{ws}/resources/{id}', {
          params: { path: { ws, id } },
          body: { enabled },
        }),
      ),
    onSuccess: refresh,
  });
}

export function useDeleteResource(ws: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      answer(api.DELETE('/api/v1/workspaces/{ws}/resources/{id}', { params: { path: { ws, id } } })),
    // Does not fetch the deleted item again: the user is about to leave its page.
    onSuccess: (_, id) =>
      client.invalidateQueries({ queryKey: [ws], predicate: (query) => !query.queryKey.includes(id) }),
  });
}

export function useSetServerResources(ws: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: ({ id, resources }: { id: string } & Schemas['ResourceChoice']) =>
      answer(
        api.PUT('/api/v1/workspaces/{ws}/servers/{id}/resources', {
          params: { path: { ws, id } },
          body: { resources },
        }),
      ),
    onSuccess: refresh,
  });
}
