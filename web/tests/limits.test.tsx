import { notifications } from '@mantine/notifications';
import { screen, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, refusal, serve } from './server';

const limit = (
  name: Schemas['LimitName'],
  unit: Schemas['LimitUnit'],
  usual: number | null,
  more: Partial<Schemas['Limit']> = {},
): Schemas['Limit'] => ({
  name,
  unit,
  value: more.own ?? usual,
  default: usual,
  own: null,
  minimum: 1,
  maximum: 6000,
  in_use: null,
  refused: 0,
  ...more,
});

/** The limits as the server answers them; `own` is what the workspace has set. */
const limits = (
  own: Schemas['LimitsChange'] = {},
  bucket: Partial<Schemas['UsageBucket']> = {},
): Schemas['Limits'] => ({
  limits: [
    limit('tenant_calls', 'per_minute', 600, { own: own.tenant_calls ?? null }),
    limit('client_requests', 'per_minute', 120, { own: own.client_requests ?? null, refused: 7 }),
    limit('tool_calls', 'per_minute', null, { own: own.tool_calls ?? null }),
    limit('running_calls', 'at_once', 64, { own: own.running_calls ?? null, in_use: 3 }),
    limit('open_streams', 'at_once', 200, { own: own.open_streams ?? null }),
  ],
  usage: {
    from: '2026-01-01T00:00:00Z',
    bucket_minutes: 5,
    buckets: Array.from({ length: 72 }, (_, place) => ({
      at: new Date(Date.UTC(2026, 0, 1) + place * 300_000).toISOString(),
      calls: 0,
      busiest_minute: 0,
      refused: 0,
      ...(place === 70 ? bucket : {}),
    })),
  },
});

// Messages outlive the page that showed them.
afterEach(() => notifications.clean());

const path = '/api/v1/workspaces/harbour/limits';
const as = (role: Schemas['Role']): Schemas['Me'] => ({
  ...me,
  workspaces: me.workspaces.map((one) => ({ ...one, role })),
});
// The page and its chart are loaded when they are needed, which takes its time on a busy machine.
const patience = { timeout: 4000 };
const field = (name: string) => screen.findByRole<HTMLInputElement>('textbox', { name }, patience);

test('what was changed is sent and nothing else, the message says it, and undo brings back what the workspace had set before', async () => {
  const user = userEvent.setup();
  let own: Schemas['LimitsChange'] = { tenant_calls: 300 };
  const received = serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}`]: () => ({ body: limits(own) }),
    [`PATCH ${path}`]: ({ body }) => {
      own = { ...own, ...(body as Schemas['LimitsChange']) };
      return { body: limits(own) };
    },
  });
  open('/w/harbour/limits');
  const calls = await field('Workspace calls');
  expect(calls.value).toBe('300 a minute');
  expect(screen.getByRole<HTMLButtonElement>('button', { name: 'Save changes' }).disabled).toBe(true);
  await user.clear(calls);
  await user.type(calls, '450');
  await user.click(screen.getByRole('button', { name: 'Save changes' }));
  expect(await screen.findByText('Workspace calls: 450 a minute from now on.')).toBeTruthy();
  expect(received.at(-1)?.body).toEqual({ tenant_calls: 450 });
  await user.click(screen.getByRole('button', { name: 'Undo' }));
  expect(await screen.findByText('Change undone.')).toBeTruthy();
  expect(received.at(-1)?.body).toEqual({ tenant_calls: 300 });
  expect(calls.value).toBe('300 a minute');
});

test('only what the workspace has set can go back to the default, which is null, and the focus stays in the row', async () => {
  const user = userEvent.setup();
  let own: Schemas['LimitsChange'] = { running_calls: 8 };
  const received = serve({
    'GET /api/v1/me': { body: as('admin') },
    [`GET ${path}`]: () => ({ body: limits(own) }),
    [`PATCH ${path}`]: () => {
      own = {};
      return { body: limits(own) };
    },
  });
  open('/w/harbour/limits');
  const running = await field('Concurrent calls');
  const resets = screen.getAllByRole('button', { name: /^Reset to default/ });
  expect(resets.map((one) => one.getAttribute('aria-label'))).toEqual(['Reset to default: Concurrent calls']);
  await user.click(screen.getByRole('button', { name: /^Reset to default/ }));
  expect(await screen.findByText('Concurrent calls: 64 at once from now on.')).toBeTruthy();
  expect(received.at(-1)?.body).toEqual({ running_calls: null });
  expect(running.value).toBe('64 at once');
  expect(document.activeElement).toBe(running);
  expect(screen.queryByRole('button', { name: /^Reset to default/ })).toBeNull();
});

test('a number beyond the maximum, or none, is said at its field and never sent; no limit is an empty field where that is the default', async () => {
  const user = userEvent.setup();
  const received = serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}`]: { body: limits({ tool_calls: 60 }) },
    [`PATCH ${path}`]: { body: limits() },
  });
  open('/w/harbour/limits');
  const calls = await field('Workspace calls');
  for (const wrong of ['6001', '0', '']) {
    await user.clear(calls);
    if (wrong !== '') await user.type(calls, wrong);
    await user.click(screen.getByRole('button', { name: 'Save changes' }));
    expect(calls.getAttribute('aria-invalid'), wrong).toBe('true');
    expect(document.activeElement, wrong).toBe(calls);
  }
  expect(screen.getByText(/^Enter a whole number from 1 to 6.?000\.$/)).toBeTruthy();
  expect(received.some((one) => one.method === 'PATCH')).toBe(false);
  await user.click(screen.getByRole('button', { name: 'Discard' }));
  await user.clear(await field('Calls per tool'));
  await user.click(screen.getByRole('button', { name: 'Save changes' }));
  expect(await screen.findByText('Calls per tool: no limit from now on.')).toBeTruthy();
  expect(received.at(-1)?.body).toEqual({ tool_calls: null });
});

test('what the server refuses is said at the field, which keeps what was typed', async () => {
  const user = userEvent.setup();
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}`]: { body: limits() },
    [`PATCH ${path}`]: refusal(422, {
      code: 'limit_out_of_range',
      message: 'Choose a number between 1 and 500.',
      field: 'open_streams',
    }),
  });
  open('/w/harbour/limits');
  const streams = await field('Open event streams');
  await user.clear(streams);
  await user.type(streams, '900');
  await user.click(screen.getByRole('button', { name: 'Save changes' }));
  expect(await screen.findByText('Open event streams: Choose a number between 1 and 500.')).toBeTruthy();
  expect(streams.getAttribute('aria-invalid')).toBe('true');
  expect(streams.value).toBe('900 at once');
});

test.each(['viewer', 'member', 'developer'] as const)(
  'a %s reads the limits and cannot change them',
  async (role) => {
    serve({
      'GET /api/v1/me': { body: as(role) },
      [`GET ${path}`]: { body: limits({ tenant_calls: 300 }) },
    });
    open('/w/harbour/limits');
    expect(await screen.findByText('300 a minute', {}, patience)).toBeTruthy();
    expect(screen.getByText('no limit')).toBeTruthy();
    expect(screen.getByText(/Only an owner or admin/)).toBeTruthy();
    expect(screen.queryByRole('textbox')).toBeNull();
    expect(screen.queryByRole('button', { name: /Save|Reset/ })).toBeNull();
  },
);

test('what runs now is shown where it is known, refusals at their limit, and calls in a table for screen readers', async () => {
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}`]: { body: limits({}, { calls: 31, busiest_minute: 14, refused: 7 }) },
  });
  open('/w/harbour/limits');
  expect(await screen.findByText('3 running now', {}, patience)).toBeTruthy();
  expect(screen.queryByText(/open now/)).toBeNull();
  expect(screen.getByText('7 refused in 6 hours')).toBeTruthy();
  expect(screen.getByText(/not shown at this scale/)).toBeTruthy();
  const table = await screen.findByRole('table', { name: /Calls and refusals/ }, patience);
  const [, ...rows] = within(table).getAllByRole('row');
  expect(
    rows.map((row) =>
      within(row)
        .getAllByRole('cell')
        .slice(1)
        .map((one) => one.textContent),
    ),
  ).toEqual([['14', '31', '7']]);
});

test('without any call there is a sentence instead of a plot', async () => {
  serve({ 'GET /api/v1/me': { body: me }, [`GET ${path}`]: { body: limits() } });
  open('/w/harbour/limits');
  expect(await screen.findByRole('heading', { name: 'No calls in the last 6 hours' })).toBeTruthy();
  expect(screen.queryByRole('table')).toBeNull();
});

test('somebody who may not see the limits is told so, and the page is in the navigation', async () => {
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}`]: refusal(403, { code: 'forbidden', message: 'Ask an owner.' }),
  });
  open('/w/harbour/limits');
  expect(await screen.findByRole('heading', { name: 'You don’t have access' })).toBeTruthy();
  const links = screen.getAllByRole<HTMLAnchorElement>('link', { name: 'Limits' });
  expect(links.every((one) => one.getAttribute('href') === '/w/harbour/limits')).toBe(true);
});
