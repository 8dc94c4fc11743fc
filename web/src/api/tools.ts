import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, api, everyPage, type Schemas } from './http';

export type Tool = Schemas['Tool'];
export type ToolSummary = Schemas['ToolSummary'];
export type ToolDefinition = Schemas['HandMadeTool'];
export type ToolParameter = Schemas['HandMadeParameter'];
export type TryResult = Schemas['Trial'];
export type ContentBlock = Schemas['ContentBlock'];
export type ArgumentFault = Schemas['ArgumentFault'];

export const toolsQuery = (ws: string) =>
  queryOptions({
    queryKey: [ws, 'tools'],
    queryFn: () =>
      everyPage((cursor) =>
        answer(api.GET('/api/v1/workspaces/{ws}/tools', { params: { path: { ws }, query: { cursor } } })),
      ),
  });

export const toolQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: [ws, 'tools', id],
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/tools/{id}', { params: { path: { ws, id } } })),
  });

function useRefresh(ws: string) {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: [ws] });
}

export function useSetToolsEnabled(ws: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (body: Schemas['SwitchTools']) =>
      answer(api.POST('/api/v1/workspaces/{ws}/tools/enabled', { params: { path: { ws } }, body })),
    onSuccess: refresh,
  });
}

export function useUpdateTool(ws: string, id: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (body: Schemas['ToolChange']) =>
      answer(api.PATCH('/api/v1/workspaces/{ws}/tools/{id}', { params: { path: { ws, id } }, body })),
    onSuccess: refresh,
  });
}

export function useCreateTool(ws: string, source: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (body: ToolDefinition) =>
      answer(
        api.POST('/api/v1/workspaces/{ws}/sources/{id}/tools', {
          params: { path: { ws, id: source } },
          body,
        }),
      ),
    onSuccess: refresh,
  });
}

export function useSetDefinition(ws: string, id: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (body: ToolDefinition) =>
      answer(
        api.PUT('/api/v1/workspaces/{ws}/tools/{id}/definition', { params: { path: { ws, id } }, body }),
      ),
    onSuccess: refresh,
  });
}

export function useDeleteTool(ws: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      answer(api.DELETE('/api/v1/workspaces/{ws}/tools/{id}', { params: { path: { ws, id } } })),
    // Does not fetch the deleted item again: the user is about to leave its page.
    onSuccess: (_, id) =>
      client.invalidateQueries({ queryKey: [ws], predicate: (query) => !query.queryKey.includes(id) }),
  });
}

export function useTryTool(ws: string, id: string) {
  return useMutation({
    mutationFn: (args: Record<string, unknown>) =>
      answer(
        api.POST('/api/v1/workspaces/{ws}/tools/{id}/try', {
          params: { path: { ws, id } },
          body: { arguments: args },
        }),
      ),
  });
}
