import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key, useChange } from './nouns';

export type Webhook = Schemas['Webhook'];
export type WebhookFormat = Schemas['WebhookFormat'];
export type NewWebhook = Schemas['NewWebhook'];
export type WebhookDelivery = Schemas['WebhookDelivery'];
export type DeliveryState = Schemas['DeliveryState'];
export type EventType = Schemas['EventTypeView'];

const one = '/api/v1/workspaces/{ws}/webhooks/{id}';

export const webhooksQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'webhooks'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/webhooks', { params: { path: { ws } } })),
    refetchInterval: 30_000,
  });

export const webhookQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: key(ws, 'webhooks', id),
    queryFn: () => answer(api.GET(one, { params: { path: { ws, id } } })),
    // Its receiver can disable it: beside its deliveries, the page shows the state of that moment.
    refetchInterval: 3_000,
  });

export const eventTypesQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'webhooks', 'event-types'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/event-types', { params: { path: { ws } } })),
    staleTime: Number.POSITIVE_INFINITY,
  });

export const deliveriesQuery = (ws: string, id: string, state?: DeliveryState) =>
  infiniteQueryOptions({
    queryKey: key(ws, 'webhooks', id, 'deliveries', state ?? 'all'),
    queryFn: ({ pageParam }) =>
      answer(
        api.GET('/api/v1/workspaces/{ws}/webhooks/{id}/deliveries', {
          params: { path: { ws, id }, query: { cursor: pageParam, state } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    // A test or a replay is sent within a second or two.
    refetchInterval: (query) => ((query.state.data?.pages.length ?? 1) > 1 ? 30_000 : 3_000),
  });

export const deliveryQuery = (ws: string, id: string, event: string) =>
  queryOptions({
    queryKey: key(ws, 'webhooks', id, 'deliveries', event),
    queryFn: () =>
      answer(
        api.GET('/api/v1/workspaces/{ws}/webhooks/{id}/deliveries/{event}', {
          params: { path: { ws, id, event } },
        }),
      ),
    refetchInterval: (query) => (query.state.data?.delivery.state === 'pending' ? 3_000 : false),
  });

export const useCreateWebhook = (ws: string) =>
  useChange(ws, 'webhooks', (body: NewWebhook) =>
    answer(api.POST('/api/v1/workspaces/{ws}/webhooks', { params: { path: { ws } }, body })),
  );

export const useChangeWebhook = (ws: string, id: string) =>
  useChange(ws, 'webhooks', (body: Schemas['WebhookChange']) =>
    answer(api.PATCH(one, { params: { path: { ws, id } }, body })),
  );

export const useMoveWebhook = (ws: string, id: string) =>
  useChange(ws, 'webhooks', (body: Schemas['WebhookTarget']) =>
    answer(api.PUT('/api/v1/workspaces/{ws}/webhooks/{id}/target', { params: { path: { ws, id } }, body })),
  );

export const useRotateWebhook = (ws: string, id: string) =>
  useChange(ws, 'webhooks', () =>
    answer(api.POST('/api/v1/workspaces/{ws}/webhooks/{id}/rotate', { params: { path: { ws, id } } })),
  );

export const useSwitchWebhook = (ws: string, id: string) =>
  useChange(ws, 'webhooks', (to: 'pause' | 'resume') => {
    const params = { path: { ws, id } };
    return answer(
      to === 'pause'
        ? api.POST('/api/v1/workspaces/{ws}/webhooks/{id}/pause', { params })
        : api.POST('/api/v1/workspaces/{ws}/webhooks/{id}/resume', { params }),
    );
  });

export const useTestWebhook = (ws: string, id: string) =>
  useChange(ws, 'webhooks', () =>
    answer(api.POST('/api/v1/workspaces/{ws}/webhooks/{id}/test', { params: { path: { ws, id } } })),
  );

export const useDeleteWebhook = (ws: string) =>
  useChange(ws, 'webhooks', (id: string) => answer(api.DELETE(one, { params: { path: { ws, id } } })), {
    gone: (id) => id,
  });

export const useReplay = (ws: string, id: string) =>
  useChange(ws, 'webhooks', (event: string) =>
    answer(
      api.POST('/api/v1/workspaces/{ws}/webhooks/{id}/deliveries/{event}/replay', {
        params: { path: { ws, id, event } },
      }),
    ),
  );

export const useReplaySince = (ws: string, id: string) =>
  useChange(ws, 'webhooks', (since: string) =>
    answer(
      api.POST('/api/v1/workspaces/{ws}/webhooks/{id}/replay', {
        params: { path: { ws, id } },
        body: { since },
      }),
    ),
  );
