import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';

export type AdmissionRule = Schemas['AdmissionRule'];
export type RuleEffect = Schemas['RuleEffect'];
export type AdmissionDecision = Schemas['AdmissionDecision'];
export type SeenClient = Schemas['SeenClient'];
export type RegisteredClient = Schemas['RegisteredClient'];
export type NewClient = Schemas['NewClientBody'];
export type ConnectAttempt = Schemas['ConnectAttempt'];
export type ConnectEvent = Schemas['ConnectEvent'];

export const clientsQuery = (ws: string) =>
  queryOptions({
    queryKey: [ws, 'clients'],
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/clients', { params: { path: { ws } } })),
  });

export const registeredClientsQuery = (ws: string) =>
  queryOptions({
    queryKey: [ws, 'registered-clients'],
    queryFn: () =>
      answer(api.GET('/api/v1/workspaces/{ws}/registered-clients', { params: { path: { ws } } })),
  });

/** How often the list of attempts is read again while the page is looked at. */
const live = 5000;

export const connectsQuery = (ws: string, requestId: string) =>
  infiniteQueryOptions({
    queryKey: [ws, 'connects', requestId],
    queryFn: ({ pageParam }) =>
      answer(
        api.GET('/api/v1/workspaces/{ws}/connects', {
          params: { path: { ws }, query: { cursor: pageParam, request_id: requestId || undefined } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    refetchInterval: live,
  });

/** A decision about a client ends connections, and is recorded in the audit log. */
function useClientChange<T, R>(ws: string, change: (input: T) => Promise<R>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () =>
      Promise.all(
        ['clients', 'registered-clients', 'apps', 'audit'].map((noun) =>
          client.invalidateQueries({ queryKey: [ws, noun] }),
        ),
      ),
  });
}

export const useSetRule = (ws: string) =>
  useClientChange(ws, (rule: AdmissionRule) =>
    answer(api.PUT('/api/v1/workspaces/{ws}/client-rule', { params: { path: { ws } }, body: { rule } })),
  );

export const useAllowClient = (ws: string) =>
  useClientChange(ws, (client_id: string) =>
    answer(api.POST('/api/v1/workspaces/{ws}/clients', { params: { path: { ws } }, body: { client_id } })),
  );

export const useDecideClient = (ws: string) =>
  useClientChange(ws, ({ id, decision }: { id: string; decision: AdmissionDecision | null }) =>
    answer(
      api.PUT('/api/v1/workspaces/{ws}/clients/{id}/decision', {
        params: { path: { ws, id } },
        body: { decision },
      }),
    ),
  );

export const useDismissAskers = (ws: string) =>
  useClientChange(ws, (id: string) =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/clients/{id}/askers', { params: { path: { ws, id } } })),
  );

export const useRegisterClient = (ws: string) =>
  useClientChange(ws, (body: NewClient) =>
    answer(api.POST('/api/v1/workspaces/{ws}/registered-clients', { params: { path: { ws } }, body })),
  );

export const useChangeRegistered = (ws: string) =>
  useClientChange(
    ws,
    ({ id, ...body }: { id: string; name?: string; redirect_uris?: string[]; enabled?: boolean }) =>
      answer(
        api.PATCH('/api/v1/workspaces/{ws}/registered-clients/{id}', { params: { path: { ws, id } }, body }),
      ),
  );

export const useDeleteRegistered = (ws: string) =>
  useClientChange(ws, (id: string) =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/registered-clients/{id}', { params: { path: { ws, id } } })),
  );

export const useAddClientSecret = (ws: string) =>
  useClientChange(ws, (id: string) =>
    answer(
      api.POST('/api/v1/workspaces/{ws}/registered-clients/{id}/secrets', { params: { path: { ws, id } } }),
    ),
  );

export const useRevokeClientSecret = (ws: string) =>
  useClientChange(ws, ({ id, secret }: { id: string; secret: string }) =>
    answer(
      api.DELETE('/api/v1/workspaces/{ws}/registered-clients/{id}/secrets/{secret}', {
        params: { path: { ws, id, secret } },
      }),
    ),
  );
