import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';

export type Me = Schemas['Me'];
export type DemoApi = Schemas['DemoApi'];
export type WorkspaceSummary = Schemas['MyWorkspace'];
export type Role = Schemas['Role'];

export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: () => answer(api.GET('/api/v1/me')),
  staleTime: 60_000,
});
