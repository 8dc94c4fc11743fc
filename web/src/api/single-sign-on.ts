import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';

export type SingleSignOn = Schemas['SingleSignOn'];
export type IdentityProvider = Schemas['IdentityProvider'];
export type TenantDomain = Schemas['TenantDomain'];

export const singleSignOnQuery = (ws: string) =>
  queryOptions({
    queryKey: [ws, 'single-sign-on'],
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/single-sign-on', { params: { path: { ws } } })),
  });

/** A change, after which the page is read again. */
function useChange<Argument, Answer>(ws: string, change: (argument: Argument) => Promise<Answer>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: singleSignOnQuery(ws).queryKey }),
        client.invalidateQueries({ queryKey: [ws, 'audit'] }),
      ]),
  });
}

export const useSetProvider = (ws: string) =>
  useChange(ws, (body: Schemas['ProviderBody']) =>
    answer(api.PUT('/api/v1/workspaces/{ws}/single-sign-on/provider', { params: { path: { ws } }, body })),
  );

export const useTestProvider = (ws: string) =>
  useMutation({
    mutationFn: () =>
      answer(api.POST('/api/v1/workspaces/{ws}/single-sign-on/provider/test', { params: { path: { ws } } })),
  });

export const useDeleteProvider = (ws: string) =>
  useChange(ws, () =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/single-sign-on/provider', { params: { path: { ws } } })),
  );

export const useEnforce = (ws: string) =>
  useChange(ws, (enforced: boolean) =>
    answer(
      api.PUT('/api/v1/workspaces/{ws}/single-sign-on/enforcement', {
        params: { path: { ws } },
        body: { enforced },
      }),
    ),
  );

export const useAddDomain = (ws: string) =>
  useChange(ws, (domain: string) =>
    answer(
      api.POST('/api/v1/workspaces/{ws}/single-sign-on/domains', {
        params: { path: { ws } },
        body: { domain },
      }),
    ),
  );

export const useCheckDomain = (ws: string) =>
  useChange(ws, (id: string) =>
    answer(
      api.POST('/api/v1/workspaces/{ws}/single-sign-on/domains/{id}/check', { params: { path: { ws, id } } }),
    ),
  );

export const useRemoveDomain = (ws: string) =>
  useChange(ws, (id: string) =>
    answer(
      api.DELETE('/api/v1/workspaces/{ws}/single-sign-on/domains/{id}', { params: { path: { ws, id } } }),
    ),
  );
