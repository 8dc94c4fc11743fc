import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key, useChange } from './nouns';

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
    queryKey: key(ws, 'clients'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/clients', { params: { path: { ws } } })),
  });

export const registeredClientsQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'registered-clients'),
    queryFn: () =>
      answer(api.GET('/api/v1/workspaces/{ws}/registered-clients', { params: { path: { ws } } })),
  });

/** How often the list of attempts is read again while the page is looked at. */
const live = 5000;

export const connectsQuery = (ws: string, requestId: string) =>
  infiniteQueryOptions({
    queryKey: key(ws, 'connects', requestId),
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

export const useSetRule = (ws: string) =>
  useChange(ws, 'clients', (rule: AdmissionRule) =>
    answer(api.PUT('/api/v1/workspaces/{ws}/client-rule', { params: { path: { ws } }, body: { rule } })),
  );

export const useAllowClient = (ws: string) =>
  useChange(ws, 'clients', (client_id: string) =>
    answer(api.POST('/api/v1/workspaces/{ws}/clients', { params: { path: { ws } }, body: { client_id } })),
  );

export const useDecideClient = (ws: string) =>
  useChange(ws, 'clients', ({ id, decision }: { id: string; decision: AdmissionDecision | null }) =>
    answer(
      api.PUT('/api/v1/workspaces/{ws}/clients/{id}/decision', {
        params: { path: { ws, id } },
        body: { decision },
      }),
    ),
  );

export const useDismissAskers = (ws: string) =>
  useChange(ws, 'clients', (id: string) =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/clients/{id}/askers', { params: { path: { ws, id } } })),
  );

export const useRegisterClient = (ws: string) =>
  useChange(ws, 'registered-clients', (body: NewClient) =>
    answer(api.POST('/api/v1/workspaces/{ws}/registered-clients', { params: { path: { ws } }, body })),
  );

export const useChangeRegistered = (ws: string) =>
  useChange(
    ws,
    'registered-clients',
    ({ id, ...body }: { id: string; name?: string; redirect_uris?: string[]; enabled?: boolean }) =>
      answer(
        api.PATCH('/api/v1/workspaces/{ws}/registered-clients/{id}', { params: { path: { ws, id } }, body }),
      ),
  );

export const useDeleteRegistered = (ws: string) =>
  useChange(ws, 'registered-clients', (id: string) =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/registered-clients/{id}', { params: { path: { ws, id } } })),
  );

export const useAddClientSecret = (ws: string) =>
  useChange(ws, 'registered-clients', (id: string) =>
    answer(
      api.POST('/api/v1/workspaces/{ws}/registered-clients/{id}/secrets', { params: { path: { ws, id } } }),
    ),
  );

export const useRevokeClientSecret = (ws: string) =>
  useChange(ws, 'registered-clients', ({ id, secret }: { id: string; secret: string }) =>
    answer(
      api.DELETE('/api/v1/workspaces/{ws}/registered-clients/{id}/secrets/{secret}', {
        params: { path: { ws, id, secret } },
      }),
    ),
  );
