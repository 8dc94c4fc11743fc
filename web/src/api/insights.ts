import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key } from './nouns';

export type Insights = Schemas['Insights'];
export type InsightsRow = Schemas['InsightsRow'];

/** The periods that the service sums, with their names. */
export const periods = {
  '1h': 'Last hour',
  '6h': 'Last 6 hours',
  '24h': 'Last 24 hours',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
  '90d': 'Last 90 days',
} as const;

export type Period = keyof typeof periods;

/** What insights are narrowed to. */
export interface InsightsFilter {
  tool?: string | undefined;
  server?: string | undefined;
  client?: string | undefined;
  outcome?: string | undefined;
}

export const insightsQuery = (ws: string, period: Period, filter: InsightsFilter) =>
  queryOptions({
    queryKey: key(ws, 'insights', period, JSON.stringify(filter)),
    queryFn: () =>
      answer(
        api.GET('/api/v1/workspaces/{ws}/insights', {
          params: { path: { ws }, query: { period, ...filter } },
        }),
      ),
    refetchInterval: 10_000,
  });
