import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { asQuery, type CallFilter } from '../call-filter';
import { answer, api, type Schemas } from './http';
import { key } from './nouns';
import { liveCalls } from './workspaces';

export type CallDetail = Schemas['CallDetail'];

export const callsQuery = (ws: string, filter: CallFilter) =>
  infiniteQueryOptions({
    queryKey: key(ws, 'calls', JSON.stringify(filter)),
    queryFn: ({ pageParam }) =>
      answer(
        api.GET('/api/v1/workspaces/{ws}/calls', {
          params: { path: { ws }, query: { cursor: pageParam, ...asQuery(filter) } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    refetchInterval: liveCalls,
  });

export const callQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: key(ws, 'calls', id),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/calls/{id}', { params: { path: { ws, id } } })),
  });
