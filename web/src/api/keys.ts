import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key, useChange } from './nouns';

export type ApiKey = Schemas['ApiKey'];
export type ServiceAccount = Schemas['ServiceAccount'];
export type NewApiKey = Schemas['NewApiKeyBody'];
export type NewAccount = Schemas['NewAccountBody'];
export type NewApiAccess = Schemas['NewApiAccess'];

export const apiKeysQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'api-keys'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/api-keys', { params: { path: { ws } } })),
  });

export const serviceAccountsQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'service-accounts'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/service-accounts', { params: { path: { ws } } })),
  });

export const useCreateKey = (ws: string) =>
  useChange(ws, 'api-keys', (body: NewApiKey) =>
    answer(api.POST('/api/v1/workspaces/{ws}/api-keys', { params: { path: { ws } }, body })),
  );

export const useRevokeKey = (ws: string) =>
  useChange(ws, 'api-keys', (id: string) =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/api-keys/{id}', { params: { path: { ws, id } } })),
  );

export const useCreateAccount = (ws: string) =>
  useChange(ws, 'service-accounts', (body: NewAccount) =>
    answer(api.POST('/api/v1/workspaces/{ws}/service-accounts', { params: { path: { ws } }, body })),
  );

export const useChangeAccount = (ws: string) =>
  useChange(ws, 'service-accounts', ({ id, ...body }: { id: string; name?: string; enabled?: boolean }) =>
    answer(
      api.PATCH('/api/v1/workspaces/{ws}/service-accounts/{id}', { params: { path: { ws, id } }, body }),
    ),
  );

export const useDeleteAccount = (ws: string) =>
  useChange(ws, 'service-accounts', (id: string) =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/service-accounts/{id}', { params: { path: { ws, id } } })),
  );

export const useAddSecret = (ws: string) =>
  useChange(ws, 'service-accounts', (id: string) =>
    answer(
      api.POST('/api/v1/workspaces/{ws}/service-accounts/{id}/secrets', { params: { path: { ws, id } } }),
    ),
  );

export const useRevokeSecret = (ws: string) =>
  useChange(ws, 'service-accounts', ({ id, secret }: { id: string; secret: string }) =>
    answer(
      api.DELETE('/api/v1/workspaces/{ws}/service-accounts/{id}/secrets/{secret}', {
        params: { path: { ws, id, secret } },
      }),
    ),
  );

/** Gives an account access to the management API, or changes it. */
export const useGiveApiAccess = (ws: string) =>
  useChange(ws, 'service-accounts', ({ id, ...body }: NewApiAccess & { id: string }) =>
    answer(
      api.PUT('/api/v1/workspaces/{ws}/service-accounts/{id}/api-access', {
        params: { path: { ws, id } },
        body,
      }),
    ),
  );

export const useTakeApiAccess = (ws: string) =>
  useChange(ws, 'service-accounts', (id: string) =>
    answer(
      api.DELETE('/api/v1/workspaces/{ws}/service-accounts/{id}/api-access', {
        params: { path: { ws, id } },
      }),
    ),
  );
