import { Button, Group, Select, Stack, Text } from '@mantine/core';
import { IconMailForward } from '@tabler/icons-react';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../../../api/http';
import {
  type DeliveryState,
  deliveriesQuery,
  deliveryQuery,
  useReplay,
  useReplaySince,
  type Webhook,
  type WebhookDelivery,
} from '../../../api/webhooks';
import { Ago } from '../../../components/ago';
import { Dialog } from '../../../components/dialog';
import { JsonTree } from '../../../components/json-tree';
import { Empty, Loaded, Panel } from '../../../components/page';
import { Refused } from '../../../components/refused';
import { cell, LoadMore, Table, TableBar } from '../../../components/table';
import { toastDone } from '../../../components/toast';
import { formatDateTime, formatDuration } from '../../../time';
import { DeliveryStatus } from './-webhook-status';

const states = [
  { value: 'all', label: 'All deliveries' },
  { value: 'pending', label: 'Pending' },
  { value: 'delivered', label: 'Delivered' },
  { value: 'failed', label: 'Failed' },
];

/** The deliveries of an endpoint, with their attempts and replay. */
export function Deliveries({ ws, webhook }: { ws: string; webhook: Webhook }) {
  const [state, setState] = useState<DeliveryState>();
  const [opened, setOpened] = useState<string>();
  const [since, setSince] = useState(false);
  const deliveries = useInfiniteQuery(deliveriesQuery(ws, webhook.id, state));
  return (
    <Panel
      title="Deliveries"
      note="Kept for 30 days."
      flush
      aside={
        <Button size="compact-sm" variant="default" onClick={() => setSince(true)}>
          Replay missed
        </Button>
      }
    >
      <TableBar>
        <Select
          aria-label="State"
          data={states}
          value={state ?? 'all'}
          allowDeselect={false}
          onChange={(next) => setState(next === 'all' ? undefined : (next as DeliveryState))}
        />
      </TableBar>
      <Loaded query={deliveries} lines={6}>
        {(data) => {
          const items = data.pages.flatMap((page) => page.items);
          return items.length === 0 ? (
            <Empty icon={<IconMailForward size={24} />} title="No deliveries">
              {state ? 'No delivery is in this state.' : 'Send a test, or wait for the first event.'}
            </Empty>
          ) : (
            <>
              <DeliveryTable items={items} open={setOpened} />
              <LoadMore query={deliveries} />
            </>
          );
        }}
      </Loaded>
      <Dialog opened={opened !== undefined} onClose={() => setOpened(undefined)} title="Delivery">
        {opened && <Delivery ws={ws} id={webhook.id} event={opened} close={() => setOpened(undefined)} />}
      </Dialog>
      <ReplayDialog ws={ws} id={webhook.id} opened={since} close={() => setSince(false)} />
    </Panel>
  );
}

function DeliveryTable({ items, open }: { items: WebhookDelivery[]; open: (event: string) => void }) {
  return (
    <Table
      label="Deliveries"
      head={
        <>
          <th>Event</th>
          <th>State</th>
          <th>Attempts</th>
          <th>When</th>
          <th>
            <span className="visually-hidden">Actions</span>
          </th>
        </>
      }
    >
      {items.map((one) => (
        <tr key={one.event}>
          <td data-wide data-grow>
            <span className={cell.main}>{one.type}</span>
            <div className={cell.sub}>
              <code>{one.event}</code>
            </div>
          </td>
          <td data-label="State">
            <DeliveryStatus state={one.state} status={one.status} />
          </td>
          <td data-label="Attempts">{one.attempts}</td>
          <td data-label="When">
            <Ago at={one.at} />
          </td>
          <td data-align="right">
            <Button
              variant="subtle"
              size="compact-sm"
              aria-label={`Details of ${one.type} ${one.event}`}
              onClick={() => open(one.event)}
            >
              Details
            </Button>
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Delivery({ ws, id, event, close }: { ws: string; id: string; event: string; close: () => void }) {
  const delivery = useQuery(deliveryQuery(ws, id, event));
  const replay = useReplay(ws, id);
  return (
    <Loaded query={delivery}>
      {({ delivery: one, data, attempts }) => (
        <Stack gap="md">
          <DeliveryStatus state={one.state} status={one.status} />
          {one.next_at && <Text size="sm">Next attempt: {formatDateTime(one.next_at)}</Text>}
          <JsonTree label="Message" value={{ type: one.type, timestamp: one.at, data }} />
          <Attempts attempts={attempts} />
          <Refused error={replay.error} title="It was not sent again" />
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Close
            </Button>
            <Button
              loading={replay.isPending}
              onClick={() =>
                replay.mutate(event, { onSuccess: () => toastDone('It is sent again, under the same id.') })
              }
            >
              Send again
            </Button>
          </Group>
        </Stack>
      )}
    </Loaded>
  );
}

function Attempts({ attempts }: { attempts: Schemas['WebhookAttempt'][] }) {
  if (attempts.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        No attempt yet.
      </Text>
    );
  }
  return (
    <Table
      label="Attempts"
      head={
        <>
          <th>Attempt</th>
          <th>Answer</th>
          <th>Time</th>
        </>
      }
    >
      {attempts.map((attempt) => (
        <tr key={attempt.number}>
          <td data-label="Attempt">
            {attempt.number}
            <div className={cell.sub}>{formatDateTime(attempt.at)}</div>
          </td>
          <td data-wide data-grow>
            {attempt.status ?? attempt.fault}
            {attempt.response_head && (
              <div className={cell.sub}>
                <code>{attempt.response_head}</code>
              </div>
            )}
          </td>
          <td data-label="Time">{formatDuration(attempt.millis)}</td>
        </tr>
      ))}
    </Table>
  );
}

const spans = [
  { value: '1', label: 'Last hour' },
  { value: '24', label: 'Last 24 hours' },
  { value: '168', label: 'Last 7 days' },
  { value: '719', label: 'Last 30 days' },
];

function ReplayDialog({
  ws,
  id,
  opened,
  close,
}: {
  ws: string;
  id: string;
  opened: boolean;
  close: () => void;
}) {
  const [hours, setHours] = useState('24');
  const replay = useReplaySince(ws, id);
  function leave() {
    replay.reset();
    close();
  }
  return (
    <Dialog opened={opened} onClose={leave} title="Replay missed events">
      <Stack gap="md">
        <Select
          label="Since"
          description="Failed deliveries, and events that this endpoint has no delivery of. Delivered ones are not repeated."
          data={spans}
          value={hours}
          allowDeselect={false}
          onChange={(next) => setHours(next ?? '24')}
        />
        <Refused error={replay.error} title="Nothing was replayed" />
        <Group justify="flex-end">
          <Button variant="default" onClick={leave}>
            Cancel
          </Button>
          <Button
            loading={replay.isPending}
            onClick={() =>
              replay.mutate(new Date(Date.now() - Number(hours) * 3_600_000).toISOString(), {
                onSuccess: ({ count }) => {
                  toastDone(count === 1 ? '1 event is sent again.' : `${count} events are sent again.`);
                  leave();
                },
              })
            }
          >
            Replay
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
