// The list of calls with its filters, and the page of a call.
import { notifications } from '@mantine/notifications';
import { screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test, vi } from 'vitest';
import type { Schemas } from '../src/api/http';
import { asQuery, readTyped } from '../src/call-filter';
import { open } from './page';
import { me, refusal, serve } from './server';

const base = '/api/v1/workspaces/harbour';
const patient = { timeout: 20_000 };

const call: Schemas['CallLog'] = {
  id: 'call_1',
  at: '2026-01-01T00:00:00Z',
  server_slug: 'ports',
  tool_name: 'get_port',
  client_name: 'Claude',
  outcome: 'ok',
  status: 200,
  duration_ms: 12,
  weight: 4,
};

const detail: Schemas['CallDetail'] = {
  id: 'call_1',
  at: '2026-01-01T00:00:00Z',
  server_slug: 'ports',
  tool_name: 'get_port',
  caller: 'api_key',
  client_name: 'Claude',
  client_version: '2.1',
  revision: '2025-11-25',
  era: 'session',
  outcome: 'upstream_error',
  error: 'The API could not be reached.',
  timing: { wait_us: 40, backend_us: 9_000, own_us: 3_000, took_us: 12_000 },
  bytes_in: 31,
  bytes_out: 400,
  session: 'ab12',
  trace_id: 'ab'.repeat(16),
  weight: 1,
};

const answers = {
  'GET /api/v1/me': { body: me },
  [`GET ${base}/calls`]: { body: { items: [call] } },
  [`GET ${base}/calls/call_1`]: { body: detail },
};

test('the chip of a person has the name', async () => {
  const member = { user_id: 'usr_1', email: 'ada@example.org', display_name: 'Ada', role: 'owner' };
  serve({ ...answers, [`GET ${base}/members`]: { body: { items: [member] } } });
  open('/w/harbour/calls?user=usr_1');
  expect(await screen.findByText('user: Ada', {}, patient)).toBeTruthy();
}, 40_000);

test('what is typed becomes filters, and a fault is named', () => {
  const now = Date.parse('2026-01-02T00:00:00Z');
  expect(readTyped('tool:get_port client:"claude code" outcome:error dur:>1.5s from:1h', now)).toEqual({
    filter: {
      tool: 'get_port',
      client: 'claude code',
      outcome: 'error',
      dur: '>1.5s',
      from: '2026-01-01T23:00:00.000Z',
    },
  });
  expect(readTyped('get_port', now)).toEqual({ filter: { tool: 'get_port' } });
  for (const wrong of [
    'toll:x',
    'outcome:bad',
    'era:bronze',
    'dur:500',
    'dur:1s..',
    'dur:>1s..2s',
    'from:soon',
  ]) {
    expect(readTyped(wrong, now), wrong).toHaveProperty('fault');
  }
  expect(asQuery({ tool: 'x', dur: '>1.5s' })).toEqual({ tool: 'x', longer_ms: 1500 });
  expect(asQuery({ dur: '<200ms' })).toEqual({ shorter_ms: 200 });
  // A range has its upper bound, as a bucket of durations has.
  expect(asQuery({ dur: '8.192ms..16.384ms' })).toEqual({ longer_ms: 8.192, shorter_ms: 16.385 });
  expect(asQuery({ dur: '500ms..1.5s' })).toEqual({ longer_ms: 500, shorter_ms: 1500.001 });
  expect(readTyped('error:"The API answered 503." dur:1s..2s', now)).toEqual({
    filter: { error: 'The API answered 503.', dur: '1s..2s' },
  });
});

test('a filter stands in the address as a chip, and is removed by it', async () => {
  const received = serve(answers);
  const { router } = open('/w/harbour/calls?tool=get_port');
  const user = userEvent.setup();
  await screen.findByText('one of 4', {}, patient);
  await user.type(screen.getByRole('textbox', { name: 'Filter' }), 'outcome:error{Enter}');
  await waitFor(() => expect(router.state.location.search).toEqual({ tool: 'get_port', outcome: 'error' }));
  await user.click(await screen.findByRole('button', { name: 'Remove the filter tool' }, patient));
  await waitFor(() => expect(router.state.location.search).toEqual({ outcome: 'error' }));
  await user.type(screen.getByRole('textbox', { name: 'Filter' }), 'speed:fast{Enter}');
  expect(await screen.findByText(/^“speed” is no filter/)).toBeTruthy();
  expect(received.filter((one) => one.path === `${base}/calls`).length).toBeGreaterThanOrEqual(3);
  const csv = screen.queryByRole('menuitem', { name: 'CSV' });
  expect(csv).toBeNull();
  await user.click(screen.getByRole('button', { name: 'Export' }));
  const link = await screen.findByRole('menuitem', { name: 'CSV' }, patient);
  expect(link.getAttribute('href')).toBe(`${base}/calls/export?outcome=error&format=csv`);
}, 40_000);

test('a call leads to its page with cause, client, times and trace', async () => {
  serve(answers);
  open('/w/harbour/calls');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('link', { name: 'get_port' }, patient));
  expect(await screen.findByText('The API could not be reached.', {}, patient)).toBeTruthy();
  for (const text of ['API key', 'Claude 2.1', '2025-11-25', '40 µs', '9 ms', '3 ms', 'ab'.repeat(16)]) {
    expect(screen.getByText(text), text).toBeTruthy();
  }
}, 40_000);

test('a search that found nothing yet goes on with older calls', async () => {
  let asked = 0;
  const pages = [{ items: [], next_cursor: 'older' }, { items: [call] }];
  serve({
    ...answers,
    [`GET ${base}/calls`]: () => {
      const body = pages[Math.min(asked, 1)];
      asked += 1;
      return { body };
    },
  });
  open('/w/harbour/calls?tool=rare');
  const user = userEvent.setup();
  await screen.findByText(/Older ones are not searched yet/, {}, patient);
  await user.click(screen.getByRole('button', { name: 'Search older calls' }));
  expect(await screen.findByRole('link', { name: 'get_port' }, patient)).toBeTruthy();
}, 40_000);

test('a live view that ends is explained: no place, or no session', async () => {
  const views: View[] = [];
  class View extends EventTarget {
    static readonly CLOSED = 2;
    readyState = 1;
    constructor() {
      super();
      views.push(this);
    }
    close() {}
    refuse() {
      this.readyState = View.CLOSED;
      this.dispatchEvent(new Event('error'));
    }
  }
  vi.stubGlobal('EventSource', View);
  let signedIn = true;
  serve({
    ...answers,
    [`GET ${base}/calls`]: () =>
      signedIn
        ? { body: { items: [call] } }
        : refusal(401, { code: 'unauthenticated', message: 'Please sign in.' }),
  });
  open('/w/harbour/calls');
  const user = userEvent.setup();
  const live = await screen.findByRole<HTMLInputElement>('switch', { name: /^Live/ }, patient);
  await user.click(live);
  views[0]?.refuse();
  expect(await screen.findByText(/The live view was refused/, {}, patient)).toBeTruthy();
  expect(live.checked).toBe(false);
  notifications.clean();
  await waitFor(() => expect(screen.queryByText(/The live view was refused/)).toBeNull(), patient);

  await user.click(live);
  signedIn = false;
  views[1]?.refuse();
  expect(await screen.findByText('You were signed out', {}, patient)).toBeTruthy();
  expect(screen.queryByText(/The live view was refused/)).toBeNull();
  expect(live.checked).toBe(false);
}, 40_000);
