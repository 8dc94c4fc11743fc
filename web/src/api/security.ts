import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { ApiError, answer, api, type Schemas } from './http';
import { changed, key } from './nouns';

export type Security = Schemas['Security'];
export type SecondFactorRule = Schemas['SecondFactorRule'];

export const securityQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'security'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/security', { params: { path: { ws } } })),
  });

export function useChangeSecurity(ws: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: Schemas['SecurityChange']) =>
      answer(api.PATCH('/api/v1/workspaces/{ws}/security', { params: { path: { ws } }, body })),
    onSuccess: (security) => {
      client.setQueryData(securityQuery(ws).queryKey, security);
      return changed(client, ws, 'security');
    },
  });
}

/** The page that leads to what a workspace asks of sign-ins, a factor or its own provider, if that is what the API wants first. */
export function factorPath(error: unknown): string | undefined {
  if (
    !(error instanceof ApiError) ||
    !['second_factor_first', 'company_sign_in_first'].includes(error.code)
  ) {
    return undefined;
  }
  const path = (error.details as { path?: unknown } | null)?.path;
  return typeof path === 'string' && /^\/(account|login\/company)\//.test(path) ? path : undefined;
}
