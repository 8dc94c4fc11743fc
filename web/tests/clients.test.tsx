import { notifications } from '@mantine/notifications';
import { screen, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, refusal, serve } from './server';

afterEach(() => notifications.clean());

const base = '/api/v1/workspaces/harbour';
const patient = { timeout: 20_000 };

const client: Schemas['SeenClient'] = {
  id: 'cli_1',
  client_id: 'cli_1',
  name: 'Deckhand',
  imitates: false,
  admitted: false,
  people: 2,
  askers: [
    { user_id: 'usr_2', user_name: 'Bob', user_email: 'bob@example.org', asked_at: '2026-01-01T00:00:00Z' },
  ],
};
const verified: Schemas['SeenClient'] = {
  id: 'cli_2',
  client_id: 'https://claude.ai/oauth/claude-code-client-metadata',
  host: 'claude.ai',
  name: 'Claude Code',
  verified: 'Anthropic',
  imitates: false,
  admitted: true,
  decision: 'allowed',
  people: 5,
  askers: [],
};
const registered: Schemas['RegisteredClient'] = {
  id: 'cli_3',
  client_id: 'cli_3',
  name: 'Desk',
  redirect_uris: ['https://desk.example/cb'],
  proof: 'client_secret',
  enabled: true,
  stopped: false,
  secrets: [{ id: 'sec_1', hint: 'cs_AbCdEf', created_at: '2026-01-01T00:00:00Z' }],
  apps: 1,
  created_at: '2026-01-01T00:00:00Z',
};
const effects: Schemas['RuleEffect'][] = [{ rule: 'verified', apps: 1, clients: 1 }];
const lists = (clients: Schemas['SeenClient'][] = [client, verified]) => ({
  'GET /api/v1/me': { body: me },
  [`GET ${base}/clients`]: { body: { rule: 'approval', effects, clients } },
  [`GET ${base}/registered-clients`]: { body: { items: [registered] } },
});

test('who asks for a client is shown, and allowing it is one press', async () => {
  const received = serve({
    ...lists(),
    [`PUT ${base}/clients/cli_1/decision`]: { body: { ended: 0 } },
  });
  open('/w/harbour/clients');
  const user = userEvent.setup();
  expect(await screen.findByText(/Bob,/, {}, patient)).toBeTruthy();
  expect(screen.getByText('Published by Anthropic')).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Allow Deckhand' }));
  expect(await screen.findByText('Deckhand can connect now.', {}, patient)).toBeTruthy();
  const sent = received.find((one) => one.method === 'PUT');
  expect(sent?.body).toEqual({ decision: 'allowed' });
}, 30_000);

test('blocking and a stricter rule are asked about, because they end connections', async () => {
  const received = serve({
    ...lists(),
    [`PUT ${base}/clients/cli_2/decision`]: { body: { ended: 5 } },
    [`PUT ${base}/client-rule`]: { body: { ended: 1 } },
  });
  open('/w/harbour/clients');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'Block Claude Code' }, patient));
  let dialog = await screen.findByRole('dialog', {}, patient);
  expect(received.some((one) => one.method === 'PUT')).toBe(false);
  await user.click(within(dialog).getByRole('button', { name: 'Block' }));
  expect(await screen.findByText('Claude Code was blocked. 5 connections ended.', {}, patient)).toBeTruthy();
  await user.click(screen.getByRole('radio', { name: /Verified clients/ }));
  await user.click(screen.getByRole('button', { name: 'Save' }));
  dialog = await screen.findByRole('dialog', {}, patient);
  await user.click(within(dialog).getByRole('button', { name: 'Change' }));
  expect(await screen.findByText('Policy changed. One connection ended.', {}, patient)).toBeTruthy();
  expect(received.at(-1)?.path.startsWith(base)).toBe(true);
  const sent = received.find((one) => one.path === `${base}/client-rule`);
  expect(sent?.body).toEqual({ rule: 'verified' });
}, 30_000);

test('a client is registered with its addresses, and its secret is shown once', async () => {
  const received = serve({
    ...lists([]),
    [`POST ${base}/registered-clients`]: {
      status: 201,
      body: { client: registered, client_secret: 'cs_secret' },
    },
  });
  open('/w/harbour/clients');
  const user = userEvent.setup();
  expect(await screen.findByText('No clients yet', {}, patient)).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Register a client' }));
  const dialog = await screen.findByRole('dialog', {}, patient);
  await user.type(within(dialog).getByLabelText('Name'), 'Desk');
  await user.type(
    within(dialog).getByLabelText('Redirect URIs'),
    'https://desk.example/cb{enter}http://127.0.0.1/cb',
  );
  await user.click(within(dialog).getByText('Client secret'));
  await user.click(within(dialog).getByRole('button', { name: 'Register' }));
  expect(await screen.findByText('cs_secret', {}, patient)).toBeTruthy();
  const sent = received.find((one) => one.method === 'POST');
  expect(sent?.body).toEqual({
    name: 'Desk',
    redirect_uris: ['https://desk.example/cb', 'http://127.0.0.1/cb'],
    proof: 'client_secret',
  });
}, 30_000);

test('a redirect URI that is refused says why, at its field', async () => {
  serve({
    ...lists(),
    [`PATCH ${base}/registered-clients/cli_3`]: refusal(422, {
      code: 'redirect_uris_invalid',
      message: 'javascript:x: a redirect URI uses a scheme that is not allowed.',
      field: 'redirect_uris',
    }),
  });
  open('/w/harbour/clients');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'Edit Desk' }, patient));
  const dialog = await screen.findByRole('dialog', {}, patient);
  await user.click(within(dialog).getByRole('button', { name: 'Save' }));
  expect(await within(dialog).findByText(/a scheme that is not allowed/, {}, patient)).toBeTruthy();
}, 30_000);

test('whoever may not administer is told so', async () => {
  const forbidden = refusal(403, { code: 'forbidden', message: 'Ask an owner or admin.' });
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${base}/clients`]: forbidden,
    [`GET ${base}/registered-clients`]: forbidden,
  });
  open('/w/harbour/clients');
  expect((await screen.findAllByText('You don’t have access', {}, patient)).length).toBeGreaterThan(0);
}, 30_000);
