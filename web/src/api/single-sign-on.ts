import { queryOptions, useMutation } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key, useChange } from './nouns';

export type SingleSignOn = Schemas['SingleSignOn'];
export type IdentityProvider = Schemas['IdentityProvider'];
export type TenantDomain = Schemas['TenantDomain'];

export const singleSignOnQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'single-sign-on'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/single-sign-on', { params: { path: { ws } } })),
  });

/** A check that fails changes the state that is shown. */
const checked = { alsoFailed: true };

export const useSetProvider = (ws: string) =>
  useChange(
    ws,
    'single-sign-on',
    (body: Schemas['ProviderBody']) =>
      answer(api.PUT('/api/v1/workspaces/{ws}/single-sign-on/provider', { params: { path: { ws } }, body })),
    checked,
  );

export const useTestProvider = (ws: string) =>
  useMutation({
    mutationFn: () =>
      answer(api.POST('/api/v1/workspaces/{ws}/single-sign-on/provider/test', { params: { path: { ws } } })),
  });

export const useDeleteProvider = (ws: string) =>
  useChange(
    ws,
    'single-sign-on',
    () => answer(api.DELETE('/api/v1/workspaces/{ws}/single-sign-on/provider', { params: { path: { ws } } })),
    checked,
  );

export const useEnforce = (ws: string) =>
  useChange(
    ws,
    'single-sign-on',
    (enforced: boolean) =>
      answer(
        api.PUT('/api/v1/workspaces/{ws}/single-sign-on/enforcement', {
          params: { path: { ws } },
          body: { enforced },
        }),
      ),
    checked,
  );

export const useAddDomain = (ws: string) =>
  useChange(
    ws,
    'single-sign-on',
    (domain: string) =>
      answer(
        api.POST('/api/v1/workspaces/{ws}/single-sign-on/domains', {
          params: { path: { ws } },
          body: { domain },
        }),
      ),
    checked,
  );

export const useCheckDomain = (ws: string) =>
  useChange(
    ws,
    'single-sign-on',
    (id: string) =>
      answer(
        api.POST('/api/v1/workspaces/{ws}/single-sign-on/domains/{id}/check', {
          params: { path: { ws, id } },
        }),
      ),
    checked,
  );

export const useRemoveDomain = (ws: string) =>
  useChange(
    ws,
    'single-sign-on',
    (id: string) =>
      answer(
        api.DELETE('/api/v1/workspaces/{ws}/single-sign-on/domains/{id}', { params: { path: { ws, id } } }),
      ),
    checked,
  );
