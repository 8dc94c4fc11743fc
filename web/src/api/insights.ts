import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key } from './nouns';

export type Insights = Schemas['Insights'];
export type InsightsRow = Schemas['InsightsRow'];
export type ErrorCause = Schemas['ErrorCause'];
export type ErrorCauses = Schemas['ErrorCauses'];
export type PersonUse = Schemas['PersonUse'];
export type PeopleUse = Schemas['PeopleUse'];

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

const everyTenSeconds = 10_000;

/** The log is read less often: it costs more than the counts. */
const everyMinute = 60_000;

const asked = (ws: string, period: Period, filter: InsightsFilter) => ({
  params: { path: { ws }, query: { period, ...filter } },
});

const keyOf = (ws: string, part: string, period: Period, filter: InsightsFilter) =>
  key(ws, 'insights', part, period, JSON.stringify(filter));

export const insightsQuery = (ws: string, period: Period, filter: InsightsFilter) =>
  queryOptions({
    queryKey: keyOf(ws, 'sums', period, filter),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/insights', asked(ws, period, filter))),
    refetchInterval: everyTenSeconds,
  });

export const errorCausesQuery = (ws: string, period: Period, filter: InsightsFilter) =>
  queryOptions({
    queryKey: keyOf(ws, 'errors', period, filter),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/insights/errors', asked(ws, period, filter))),
    refetchInterval: everyMinute,
  });

export const peopleUseQuery = (ws: string, period: Period, filter: InsightsFilter) =>
  queryOptions({
    queryKey: keyOf(ws, 'people', period, filter),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/insights/people', asked(ws, period, filter))),
    refetchInterval: everyMinute,
  });
