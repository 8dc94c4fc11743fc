import { infiniteQueryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key } from './nouns';

export type AuditEntry = Schemas['AuditEvent'];

export const auditQuery = (ws: string) =>
  infiniteQueryOptions({
    queryKey: key(ws, 'audit'),
    queryFn: ({ pageParam }) =>
      answer(
        api.GET('/api/v1/workspaces/{ws}/audit', { params: { path: { ws }, query: { cursor: pageParam } } }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
