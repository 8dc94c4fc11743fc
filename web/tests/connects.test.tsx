import { screen, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, serve } from './server';

const base = '/api/v1/workspaces/harbour';
const patient = { timeout: 20_000 };

const refused: Schemas['ConnectAttempt'] = {
  id: '7',
  state: 'refused',
  reached: 'authorize',
  began_at: '2026-01-01T00:00:00Z',
  ended_at: '2026-01-01T00:00:01Z',
  client_name: 'Deckhand',
  known: [{ client: 'ChatGPT and others', text: 'Remove the client secret.', source: 'omi#8824' }],
  steps: [
    {
      at: '2026-01-01T00:00:00Z',
      step: 'challenge',
      outcome: 'ok',
      agent: 'deckhand/1.0',
      sent: {},
    },
    {
      at: '2026-01-01T00:00:01Z',
      step: 'authorize',
      outcome: 'refused',
      rule: 'A3',
      rule_says: 'The redirect URI is one of those that the client registered.',
      fault: 'redirect_uri does not match',
      request_id: '0123456789abcdef01234567',
      sent: { redirect_uri: 'https://other.example/cb', state: true },
    },
  ],
};
const connected: Schemas['ConnectAttempt'] = {
  id: '8',
  state: 'connected',
  reached: 'request',
  began_at: '2026-01-01T00:00:00Z',
  ended_at: '2026-01-01T00:00:01Z',
  client_name: 'Claude Code',
  user_name: 'Ada',
  known: [],
  steps: [{ at: '2026-01-01T00:00:01Z', step: 'request', outcome: 'ok', sent: {} }],
};

const list = (items: Schemas['ConnectAttempt'][]) => ({
  'GET /api/v1/me': { body: me },
  [`GET ${base}/connects`]: { body: { items } },
});

test('an attempt shows its steps with the rule that refused, what was sent, and what is known', async () => {
  serve(list([refused, connected]));
  open('/w/harbour/connects');
  const user = userEvent.setup();
  const steps = await screen.findByRole('button', { name: 'Show the steps of Deckhand' }, patient);
  expect(screen.queryByText(/^The redirect URI is one of those/)).toBeNull();
  await user.click(steps);
  expect(await screen.findByText(/^The redirect URI is one of those/, {}, patient)).toBeTruthy();
  expect(screen.getByText('https://other.example/cb')).toBeTruthy();
  expect(screen.getByText('0123456789abcdef01234567')).toBeTruthy();
  expect(screen.getByText(/Remove the client secret/)).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Hide the steps of Deckhand' }));
  expect(screen.queryByText(/^The redirect URI is one of those/)).toBeNull();
}, 30_000);

test('a step that a client repeats says how often', async () => {
  const looping: Schemas['ConnectAttempt'] = {
    ...refused,
    steps: [
      {
        at: '2026-01-01T00:00:00Z',
        step: 'refresh',
        outcome: 'refused',
        sent: {},
        repeats: 512,
        last_at: '2026-01-02T00:00:00Z',
      },
    ],
  };
  serve(list([looping]));
  open('/w/harbour/connects');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'Show the steps of Deckhand' }, patient));
  expect(await screen.findByText(/Repeated 512 times, last/, {}, patient)).toBeTruthy();
}, 30_000);

test('attempts are narrowed by what came of them', async () => {
  serve(list([refused, connected]));
  open('/w/harbour/connects');
  const user = userEvent.setup();
  const table = await screen.findByRole('table', { name: 'Connection attempts' }, patient);
  expect(within(table).getByText('Claude Code')).toBeTruthy();
  await user.click(screen.getByRole('combobox', { name: 'Outcome' }));
  await user.click(await screen.findByRole('option', { name: 'Refused', hidden: true }, patient));
  expect(within(table).queryByText('Claude Code')).toBeNull();
  expect(within(table).getByText('Deckhand')).toBeTruthy();
}, 30_000);

test('the first visit says what to do', async () => {
  serve(list([]));
  open('/w/harbour/connects');
  expect(await screen.findByText('No connection attempts yet', {}, patient)).toBeTruthy();
}, 30_000);
