import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';

export type ApiKey = Schemas['ApiKey'];
export type ServiceAccount = Schemas['ServiceAccount'];
export type NewApiKey = Schemas['NewApiKeyBody'];
export type NewAccount = Schemas['NewAccountBody'];

export const apiKeysQuery = (ws: string) =>
  queryOptions({
    queryKey: [ws, 'api-keys'],
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/api-keys', { params: { path: { ws } } })),
  });

export const serviceAccountsQuery = (ws: string) =>
  queryOptions({
    queryKey: [ws, 'service-accounts'],
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/service-accounts', { params: { path: { ws } } })),
  });

/** Accounts and keys name each other, and everything about them stands in the audit log. */
function useKeyChange<T, R>(ws: string, change: (input: T) => Promise<R>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () =>
      Promise.all(
        ['api-keys', 'service-accounts', 'audit'].map((noun) =>
          client.invalidateQueries({ queryKey: [ws, noun] }),
        ),
      ),
  });
}

export const useCreateKey = (ws: string) =>
  useKeyChange(ws, (body: NewApiKey) =>
    answer(api.POST('/api/v1/workspaces/{ws}/api-keys', { params: { path: { ws } }, body })),
  );

export const useRevokeKey = (ws: string) =>
  useKeyChange(ws, (id: string) =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/api-keys/{id}', { params: { path: { ws, id } } })),
  );

export const useCreateAccount = (ws: string) =>
  useKeyChange(ws, (body: NewAccount) =>
    answer(api.POST('/api/v1/workspaces/{ws}/service-accounts', { params: { path: { ws } }, body })),
  );

export const useChangeAccount = (ws: string) =>
  useKeyChange(ws, ({ id, ...body }: { id: string; name?: string; enabled?: boolean }) =>
    answer(
      api.PATCH('/api/v1/workspaces/{ws}/service-accounts/{id}', { params: { path: { ws, id } }, body }),
    ),
  );

export const useDeleteAccount = (ws: string) =>
  useKeyChange(ws, (id: string) =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/service-accounts/{id}', { params: { path: { ws, id } } })),
  );

export const useAddSecret = (ws: string) =>
  useKeyChange(ws, (id: string) =>
    answer(
      api.POST('/api/v1/workspaces/{ws}/service-accounts/{id}/secrets', { params: { path: { ws, id } } }),
    ),
  );

export const useRevokeSecret = (ws: string) =>
  useKeyChange(ws, ({ id, secret }: { id: string; secret: string }) =>
    answer(
      api.DELETE('/api/v1/workspaces/{ws}/service-accounts/{id}/secrets/{secret}', {
        params: { path: { ws, id, secret } },
      }),
    ),
  );
