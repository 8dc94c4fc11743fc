import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';

export type Me = Schemas['Me'];
export type DemoApi = Schemas['DemoApi'];
export type WorkspaceSummary = Schemas['MyWorkspace'];
export type Role = Schemas['Role'];

/** The signed-in person now, not as the page was opened. */
export const readMe = () => answer(api.GET('/api/v1/me'));

export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: readMe,
  staleTime: 60_000,
});
