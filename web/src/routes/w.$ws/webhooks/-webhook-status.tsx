import type { DeliveryState, Webhook } from '../../../api/webhooks';
import { Status } from '../../../components/badges';

/** Whether an endpoint takes deliveries. */
export function WebhookStatus({
  webhook,
}: {
  webhook: Pick<Webhook, 'state' | 'failing_since' | 'disabled_reason'>;
}) {
  if (webhook.state === 'paused') return <Status tone="warn">Paused</Status>;
  if (webhook.state === 'disabled') {
    return (
      <Status tone="bad">
        {webhook.disabled_reason === 'gone' ? 'Disabled: answered 410' : 'Disabled: failed for 5 days'}
      </Status>
    );
  }
  return webhook.failing_since ? <Status tone="warn">Failing</Status> : <Status tone="good">Active</Status>;
}

const deliveries = {
  pending: ['warn', 'Pending'],
  delivered: ['good', 'Delivered'],
  failed: ['bad', 'Failed'],
} as const satisfies Record<DeliveryState, readonly [string, string]>;

export function DeliveryStatus({ state, status }: { state: DeliveryState; status?: number | null }) {
  const [tone, word] = deliveries[state];
  return (
    <Status tone={tone}>
      {word}
      {status ? ` · ${status}` : ''}
    </Status>
  );
}
