import { notifications } from '@mantine/notifications';
import { screen, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, refusal, serve } from './server';

afterEach(() => notifications.clean());

const base = '/api/v1/workspaces/harbour';
const webhook: Schemas['Webhook'] = {
  id: 'whk_1',
  format: 'standard',
  url: 'https://example.com/hook',
  description: 'Ops',
  events: ['server.published'],
  header_names: ['authorization'],
  state: 'active',
  created_at: '2026-01-01T00:00:00Z',
};
const delivery: Schemas['WebhookDelivery'] = {
  event: 'evt_1',
  type: 'server.published',
  at: '2026-01-02T00:00:00Z',
  state: 'failed',
  attempts: 2,
  status: 500,
};
const types = {
  items: ['server.published', 'alert.fired', 'alert.resolved'].map((name) => ({
    name,
    summary: `About ${name}.`,
    schema: `https://portolan.test/schemas/events/${name}.v1.json`,
  })),
};
const answers = {
  'GET /api/v1/me': { body: me },
  [`GET ${base}/alerts`]: { body: { items: [], unread: 0 } },
  [`GET ${base}/event-types`]: { body: types },
};
const patient = { timeout: 20_000 };

test('the commands for the own machine stand below the endpoints, and below none', async () => {
  let kept: Schemas['Webhook'][] = [];
  serve({ ...answers, [`GET ${base}/webhooks`]: () => ({ body: { items: kept } }) });
  for (const items of [[], [webhook]]) {
    kept = items;
    const page = open('/w/harbour/webhooks');
    const panel = await screen.findByRole('region', { name: 'Try it on your machine' }, patient);
    const commands = within(panel).getByRole('region', { name: 'commands' });
    expect(commands.textContent).toBe(
      [
        `export PORTOLAN_URL=${window.location.origin}`,
        'export PORTOLAN_WORKSPACE=harbour',
        'portolan login',
        'portolan webhooks listen --forward http://localhost:3000/hook',
      ].join('\n'),
    );
    expect(panel.textContent).toContain('Set PORTOLAN_TOKEN there instead of portolan login');
    expect(within(panel).getByRole('link', { name: 'Keys' }).getAttribute('href')).toBe('/w/harbour/keys');
    page.unmount();
  }
}, 30_000);

test('an endpoint is added with chosen events, and its secret is shown once', async () => {
  let kept: Schemas['Webhook'][] = [];
  const received = serve({
    ...answers,
    [`GET ${base}/webhooks`]: () => ({ body: { items: kept } }),
    [`GET ${base}/webhooks/whk_1`]: { body: webhook },
    [`GET ${base}/webhooks/whk_1/deliveries`]: { body: { items: [] } },
    [`POST ${base}/webhooks`]: () => {
      kept = [webhook];
      return { status: 201, body: { endpoint: webhook, secret: 'whsec_planted' } };
    },
  });
  open('/w/harbour/webhooks');
  const user = userEvent.setup();
  expect(await screen.findByText('No endpoints yet', {}, patient)).toBeTruthy();
  await user.click(screen.getAllByRole('button', { name: 'Add endpoint' })[0] as HTMLElement);
  const dialog = await screen.findByRole('dialog', {}, patient);
  const send = within(dialog).getByRole('button', { name: 'Add endpoint' });
  await user.click(send);
  expect(await within(dialog).findByText('Choose at least one event.')).toBeTruthy();
  expect(received.some((one) => one.method === 'POST')).toBe(false);
  await user.type(within(dialog).getByLabelText(/^URL/), 'https://example.com/hook');
  await user.type(within(dialog).getByLabelText('Headers'), 'Authorization: Bearer x');
  await user.click(await within(dialog).findByLabelText(/server\.published/));
  await user.click(send);
  expect(await screen.findByText('whsec_planted', {}, patient)).toBeTruthy();
  expect(received.find((one) => one.method === 'POST')?.body).toEqual({
    format: 'standard',
    url: 'https://example.com/hook',
    description: '',
    headers: [{ name: 'Authorization', value: 'Bearer x' }],
    events: ['server.published'],
  });
  await user.click(screen.getByRole('button', { name: 'Done' }));
  expect(await screen.findByRole('heading', { name: 'Ops' }, patient)).toBeTruthy();
}, 30_000);

test('a refused URL stands at its field, and the input stays', async () => {
  serve({
    ...answers,
    [`GET ${base}/webhooks`]: { body: { items: [webhook] } },
    [`POST ${base}/webhooks`]: refusal(422, {
      code: 'not_verified',
      message: 'The address must answer a signed endpoint.verify with 2xx: it answered 404.',
      field: 'url',
    }),
  });
  open('/w/harbour/webhooks');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'Add endpoint' }, patient));
  const dialog = await screen.findByRole('dialog', {}, patient);
  const url = within(dialog).getByLabelText(/^URL/);
  await user.type(url, 'https://example.com/none');
  await user.click(within(dialog).getByText('Slack'));
  await user.click(within(dialog).getByRole('button', { name: 'Add endpoint' }));
  expect(await within(dialog).findByText(/it answered 404/, {}, patient)).toBeTruthy();
  expect(url).toHaveProperty('value', 'https://example.com/none');
  expect(url.getAttribute('aria-invalid')).toBe('true');
}, 30_000);

test('a delivery shows its message and attempts, and is sent again', async () => {
  const detail: Schemas['WebhookDeliveryDetail'] = {
    delivery,
    data: { server: 'srv_1' },
    attempts: [
      { number: 1, at: '2026-01-02T00:00:00Z', millis: 20_000, fault: 'no answer within 20000 ms' },
      { number: 2, at: '2026-01-02T00:00:05Z', millis: 12, status: 500, response_head: 'oops' },
    ],
  };
  const received = serve({
    ...answers,
    [`GET ${base}/webhooks/whk_1`]: { body: webhook },
    [`GET ${base}/webhooks/whk_1/deliveries`]: { body: { items: [delivery] } },
    [`GET ${base}/webhooks/whk_1/deliveries/evt_1`]: { body: detail },
    [`POST ${base}/webhooks/whk_1/deliveries/evt_1/replay`]: { status: 202, body: { event: 'evt_1' } },
    [`POST ${base}/webhooks/whk_1/test`]: { status: 202, body: { event: 'evt_2' } },
  });
  open('/w/harbour/webhooks/whk_1');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'Details of server.published evt_1' }, patient));
  const dialog = await screen.findByRole('dialog', {}, patient);
  expect(await within(dialog).findByText('oops', {}, patient)).toBeTruthy();
  expect(within(dialog).getByText('no answer within 20000 ms')).toBeTruthy();
  await user.click(within(dialog).getByRole('button', { name: 'Send again' }));
  expect(await screen.findByText('It is sent again, under the same id.', {}, patient)).toBeTruthy();
  await user.keyboard('{Escape}');
  await user.click(screen.getByRole('button', { name: 'Send test' }));
  expect(await screen.findByText('A test message is on its way.', {}, patient)).toBeTruthy();
  expect(received.filter((one) => one.method === 'POST').map((one) => one.path)).toEqual([
    `${base}/webhooks/whk_1/deliveries/evt_1/replay`,
    `${base}/webhooks/whk_1/test`,
  ]);
}, 30_000);

test('a member without the right sees that, and no bell', async () => {
  const member = { ...me, workspaces: me.workspaces.map((one) => ({ ...one, role: 'member' as const })) };
  const received = serve({ 'GET /api/v1/me': { body: member } });
  open('/w/harbour/webhooks');
  expect(await screen.findByText('You don’t have access', {}, patient)).toBeTruthy();
  expect(screen.queryByRole('button', { name: /^Alerts/ })).toBeNull();
  expect(received.map((one) => one.path)).toEqual(['/api/v1/me']);
}, 30_000);
