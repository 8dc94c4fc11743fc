import { queryOptions, useMutation } from '@tanstack/react-query';
import { answer, api, everyPage, type Schemas } from './http';
import { key, useChange } from './nouns';

export type Tool = Schemas['Tool'];
export type ToolSummary = Schemas['ToolSummary'];
export type ToolDefinition = Schemas['HandMadeTool'];
export type ToolParameter = Schemas['HandMadeParameter'];
export type TryResult = Schemas['Trial'];
export type ContentBlock = Schemas['ContentBlock'];
export type ArgumentFault = Schemas['ArgumentFault'];

export const toolsQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'tools'),
    queryFn: () =>
      everyPage((cursor) =>
        answer(api.GET('/api/v1/workspaces/{ws}/tools', { params: { path: { ws }, query: { cursor } } })),
      ),
  });

export const toolQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: key(ws, 'tools', id),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/tools/{id}', { params: { path: { ws, id } } })),
  });

export const useSetToolsEnabled = (ws: string) =>
  useChange(ws, 'tools', (body: Schemas['SwitchTools']) =>
    answer(api.POST('/api/v1/workspaces/{ws}/tools/enabled', { params: { path: { ws } }, body })),
  );

export const useUpdateTool = (ws: string, id: string) =>
  useChange(ws, 'tools', (body: Schemas['ToolChange']) =>
    answer(api.PATCH('/api/v1/workspaces/{ws}/tools/{id}', { params: { path: { ws, id } }, body })),
  );

export const useCreateTool = (ws: string, source: string) =>
  useChange(ws, 'tools', (body: ToolDefinition) =>
    answer(
      api.POST('/api/v1/workspaces/{ws}/sources/{id}/tools', {
        params: { path: { ws, id: source } },
        body,
      }),
    ),
  );

export const useSetDefinition = (ws: string, id: string) =>
  useChange(ws, 'tools', (body: ToolDefinition) =>
    answer(api.PUT('/api/v1/workspaces/{ws}/tools/{id}/definition', { params: { path: { ws, id } }, body })),
  );

export const useDeleteTool = (ws: string) =>
  useChange(
    ws,
    'tools',
    (id: string) =>
      answer(api.DELETE('/api/v1/workspaces/{ws}/tools/{id}', { params: { path: { ws, id } } })),
    { gone: (id) => id },
  );

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
