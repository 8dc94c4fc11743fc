import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key } from './nouns';

export type SearchResult = Schemas['SearchResult'];

export const searchQuery = (ws: string, q: string) =>
  queryOptions({
    queryKey: key(ws, 'search', q),
    queryFn: () =>
      answer(api.GET('/api/v1/workspaces/{ws}/search', { params: { path: { ws }, query: { q } } })),
    enabled: q.trim() !== '',
    placeholderData: keepPreviousData,
    staleTime: 10_000,
  });
