import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';

export type Prompt = Schemas['Prompt'];
export type PromptSummary = Schemas['PromptSummary'];
export type PromptDefinition = Schemas['PromptDefinition'];
export type PromptArgument = Schemas['PromptArgument'];
export type PromptMessage = Schemas['PromptMessage'];
export type PromptBlock = Schemas['PromptBlock'];

export const promptsQuery = (ws: string) =>
  queryOptions({
    queryKey: [ws, 'prompts'],
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/prompts', { params: { path: { ws } } })),
  });

export const promptQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: [ws, 'prompts', id],
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/prompts/{id}', { params: { path: { ws, id } } })),
  });

function useRefresh(ws: string) {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: [ws] });
}

export function useCreatePrompt(ws: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (body: PromptDefinition) =>
      answer(api.POST('/api/v1/workspaces/{ws}/prompts', { params: { path: { ws } }, body })),
    onSuccess: refresh,
  });
}

export function useRewritePrompt(ws: string, id: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (body: PromptDefinition) =>
      answer(api.PUT('/api/v1/workspaces/{ws}/prompts/{id}', { params: { path: { ws, id } }, body })),
    onSuccess: refresh,
  });
}

export function useSwitchPrompt(ws: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: ({ id, enabled }: { id: string; enabled: boolean }) =>
      answer(
        api.PATCH('/api/v1/workspaces/{ws}/prompts/{id}', {
          params: { path: { ws, id } },
          body: { enabled },
        }),
      ),
    onSuccess: refresh,
  });
}

export function useDeletePrompt(ws: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      answer(api.DELETE('/api/v1/workspaces/{ws}/prompts/{id}', { params: { path: { ws, id } } })),
    // Does not fetch the deleted item again: the user is about to leave its page.
    onSuccess: (_, id) =>
      client.invalidateQueries({ queryKey: [ws], predicate: (query) => !query.queryKey.includes(id) }),
  });
}

export function useSetServerPrompts(ws: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: ({ id, prompts }: { id: string } & Schemas['PromptChoice']) =>
      answer(
        api.PUT('/api/v1/workspaces/{ws}/servers/{id}/prompts', {
          params: { path: { ws, id } },
          body: { prompts },
        }),
      ),
    onSuccess: refresh,
  });
}
