import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { changed, key } from './nouns';

export type Limits = Schemas['Limits'];
export type Limit = Schemas['Limit'];
export type LimitName = Schemas['LimitName'];
export type LimitUsage = Schemas['LimitUsage'];
/** What to set; null goes back to the platform's default. */
export type LimitsChange = Schemas['LimitsChange'];

export const limitsQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'limits'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/limits', { params: { path: { ws } } })),
    refetchInterval: 30_000,
  });

export function useChangeLimits(ws: string) {
  const client = useQueryClient();
  const { queryKey } = limitsQuery(ws);
  return useMutation({
    mutationFn: (body: LimitsChange) =>
      answer(api.PATCH('/api/v1/workspaces/{ws}/limits', { params: { path: { ws } }, body })),
    // A reading that is under way would bring the numbers of before back.
    onMutate: () => client.cancelQueries({ queryKey }),
    onSuccess: (limits) => {
      client.setQueryData(queryKey, limits);
      return changed(client, ws, 'limits');
    },
  });
}
