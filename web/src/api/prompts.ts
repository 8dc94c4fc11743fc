import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key, useChange } from './nouns';

export type Prompt = Schemas['Prompt'];
export type PromptSummary = Schemas['PromptSummary'];
export type PromptDefinition = Schemas['PromptDefinition'];
export type PromptArgument = Schemas['PromptArgument'];
export type PromptMessage = Schemas['PromptMessage'];
export type PromptBlock = Schemas['PromptBlock'];

export const promptsQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'prompts'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/prompts', { params: { path: { ws } } })),
  });

export const promptQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: key(ws, 'prompts', id),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/prompts/{id}', { params: { path: { ws, id } } })),
  });

export const useCreatePrompt = (ws: string) =>
  useChange(ws, 'prompts', (body: PromptDefinition) =>
    answer(api.POST('/api/v1/workspaces/{ws}/prompts', { params: { path: { ws } }, body })),
  );

export const useRewritePrompt = (ws: string, id: string) =>
  useChange(ws, 'prompts', (body: PromptDefinition) =>
    answer(api.PUT('/api/v1/workspaces/{ws}/prompts/{id}', { params: { path: { ws, id } }, body })),
  );

export const useSwitchPrompt = (ws: string) =>
  useChange(ws, 'prompts', ({ id, enabled }: { id: string; enabled: boolean }) =>
    answer(
      api.PATCH('/api/v1/workspaces/{ws}/prompts/{id}', {
        params: { path: { ws, id } },
        body: { enabled },
      }),
    ),
  );

export const useDeletePrompt = (ws: string) =>
  useChange(
    ws,
    'prompts',
    (id: string) =>
      answer(api.DELETE('/api/v1/workspaces/{ws}/prompts/{id}', { params: { path: { ws, id } } })),
    { gone: (id) => id },
  );

export const useSetServerPrompts = (ws: string) =>
  useChange(ws, 'servers', ({ id, prompts }: { id: string } & Schemas['PromptChoice']) =>
    answer(
      api.PUT('/api/v1/workspaces/{ws}/servers/{id}/prompts', {
        params: { path: { ws, id } },
        body: { prompts },
      }),
    ),
  );
