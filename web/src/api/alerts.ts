import { infiniteQueryOptions, queryOptions, useQuery } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key, useChange } from './nouns';

export type Alert = Schemas['Alert'];
export type AlertRule = Schemas['AlertRuleView'];
export type AlertThreshold = Schemas['AlertThreshold'];
export type AlertRuleChange = Schemas['AlertRuleChange'];

const firstPage = (ws: string, cursor?: string) =>
  answer(api.GET('/api/v1/workspaces/{ws}/alerts', { params: { path: { ws }, query: { cursor } } }));

/** Alerts come by themselves: milliseconds between two looks. */
const pause = 30_000;

/** The newest alerts and the number of unread ones, for the menu of alerts. */
export const useBell = (ws: string) =>
  useQuery({
    queryKey: key(ws, 'alerts', 'bell'),
    queryFn: () => firstPage(ws),
    refetchInterval: pause,
  });

export const alertsQuery = (ws: string) =>
  infiniteQueryOptions({
    queryKey: key(ws, 'alerts', 'list'),
    queryFn: ({ pageParam }) => firstPage(ws, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    refetchInterval: pause,
  });

export const alertRulesQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'alerts', 'rules'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/alert-rules', { params: { path: { ws } } })),
    refetchInterval: pause,
  });

export const useReadAlert = (ws: string) =>
  useChange(ws, 'alerts', (id: string) =>
    answer(api.POST('/api/v1/workspaces/{ws}/alerts/{id}/read', { params: { path: { ws, id } } })),
  );

export const useReadAllAlerts = (ws: string) =>
  useChange(ws, 'alerts', () =>
    answer(api.POST('/api/v1/workspaces/{ws}/alerts/read', { params: { path: { ws } } })),
  );

export const useChangeRule = (ws: string) =>
  useChange(ws, 'alerts', ({ rule, ...body }: { rule: string } & AlertRuleChange) =>
    answer(api.PATCH('/api/v1/workspaces/{ws}/alert-rules/{rule}', { params: { path: { ws, rule } }, body })),
  );
