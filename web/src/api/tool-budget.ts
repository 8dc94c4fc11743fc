import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key } from './nouns';

export type ToolBudget = Schemas['ToolBudget'];

/** Tokens and problems of a choice of tools (id → published name) that need not be saved. */
export function useToolBudget(
  ws: string,
  slug: string,
  names: ReadonlyMap<string, string>,
): ToolBudget | undefined {
  const [settled] = useDebouncedValue(names, 300);
  const tools = [...settled].map(([tool_id, published_name]) => ({ tool_id, published_name }));
  const { data } = useQuery({
    queryKey: [...key(ws, 'tools', 'budget', slug), tools],
    queryFn: () =>
      answer(
        api.POST('/api/v1/workspaces/{ws}/servers/check', {
          params: { path: { ws } },
          body: { slug, tools },
        }),
      ),
    enabled: tools.length > 0,
    placeholderData: keepPreviousData,
  });
  return names.size > 0 ? data : undefined;
}
