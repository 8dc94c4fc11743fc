// Insights: numbers with those of the period before, and ways to the calls behind them.
import { screen, waitFor, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { asQuery } from '../src/call-filter';
import { changeOf } from '../src/components/insights-tiles';
import { bandsOf, behind, type HeatCell, reached } from '../src/components/latency-heat-map';
import { formatBytes, formatMicros } from '../src/time';
import { open } from './page';
import { me, serve } from './server';

const path = '/api/v1/workspaces/harbour/insights';
const patient = { timeout: 20_000 };

const measured = {
  calls: 200,
  errors: 10,
  rejected: 2,
  bytes_in: 100,
  bytes_out: 1_400_000,
  tokens_out: 350_000,
  p50_ms: 12,
  p95_ms: 80,
  p99_ms: 300,
};

const insights: Schemas['Insights'] = {
  from: '2026-01-01T00:00:00Z',
  to: '2026-01-02T00:00:00Z',
  step_seconds: 3600,
  total: measured,
  before: { ...measured, calls: 100, errors: 10 },
  steps: [
    {
      at: '2026-01-01T00:00:00Z',
      ...measured,
      durations: [
        { upto_us: 16_384, calls: 150 },
        { upto_us: 65_536, calls: 49 },
      ],
    },
    { at: '2026-01-01T01:00:00Z', ...measured, durations: [] },
    { at: '2026-01-01T02:00:00Z', ...measured, durations: [{ upto_us: 32_768, calls: 1 }] },
  ],
  tools: [{ name: 'get_port', ...measured, calls_before: 100 }],
  servers: [{ name: '', ...measured, calls_before: 0 }],
  clients: [{ name: 'Claude', ...measured, calls_before: 250 }],
  outcomes: [{ name: 'upstream_error', ...measured, calls_before: 200 }],
};

const causes: Schemas['ErrorCauses'] = {
  items: [
    {
      tool_name: 'get_port',
      server_slug: 'ports',
      outcome: 'tool_error',
      status: 503,
      error: 'The API answered 503.',
      calls: 8,
      first_at: '2025-12-30T08:00:00.123456Z',
      last_at: '2026-01-01T10:00:00.123456Z',
    },
    {
      tool_name: 'get_port',
      outcome: 'internal',
      calls: 2,
      first_at: '2026-01-01T08:00:00Z',
      last_at: '2026-01-01T08:00:00Z',
    },
  ],
};

const people: Schemas['PeopleUse'] = {
  since: '2026-01-01T06:00:00Z',
  items: [
    {
      user_id: 'usr_1',
      user_name: 'Ann',
      calls: 90,
      errors: 3,
      rejected: 0,
      tokens_out: 12_345,
      last_at: '2026-01-01T10:00:00Z',
    },
    { user_id: 'usr_2', calls: 5, errors: 0, rejected: 0, tokens_out: 10, last_at: '2026-01-01T10:00:00Z' },
    { caller: 'service', calls: 2, errors: 0, rejected: 0, tokens_out: 1, last_at: '2026-01-01T10:00:00Z' },
  ],
};

const answers = {
  'GET /api/v1/me': { body: me },
  [`GET ${path}`]: { body: insights },
  [`GET ${path}/errors`]: { body: causes },
  [`GET ${path}/people`]: { body: people },
};

const addressOf = (link: HTMLElement) => new URL(link.getAttribute('href') ?? '', 'http://localhost');

test('bands are powers of two without gaps, and a cell leads to its calls', () => {
  expect(bandsOf(insights.steps)).toEqual([65_536, 32_768, 16_384]);
  expect(bandsOf([])).toEqual([]);
  expect([1, 16_384, 1_048_576, 2 ** 36].map(formatMicros)).toEqual(['1 µs', '16 ms', '1 s', '68719 s']);
  const cell = { at: '2026-01-01T00:00:10Z', upto: 16_384, calls: 1 };
  expect(behind(cell, 60, { tool: 'get_port' })).toEqual({
    tool: 'get_port',
    dur: '8.192ms..16.384ms',
    // A call that took so long came before the step in which it ended.
    from: '2026-01-01T00:00:09.983Z',
    to: '2026-01-01T00:01:10.000Z',
  });
  expect(asQuery(behind({ ...cell, upto: 1 }, 60, {}))).toMatchObject({ shorter_ms: 0.002 });
  expect(behind({ ...cell, upto: 2 ** 36 }, 60, {}).dur).toBe('>34359738.368ms');
});

test('arrow keys reach every cell that has calls', () => {
  const cell = (at: string, upto: number) => ({ at, upto, calls: 1 });
  const columns = [[cell('a', 64), cell('a', 8)], [], [cell('c', 16)]];
  const [[top, low], , [far]] = columns as [[HeatCell, HeatCell], [], [HeatCell]];
  expect(reached(columns, top, 'ArrowDown')).toBe(low);
  expect(reached(columns, low, 'ArrowUp')).toBe(top);
  expect(reached(columns, top, 'ArrowUp')).toBeUndefined();
  expect(reached(columns, low, 'ArrowRight')).toBe(far);
  expect(reached(columns, far, 'ArrowLeft')).toBe(low);
  expect(reached(columns, far, 'ArrowRight')).toBeUndefined();
  expect(reached(columns, top, 'End')).toBe(far);
  expect(reached(columns, far, 'Home')).toBe(low);
  expect(reached(columns, far, 'Enter')).toBeUndefined();
});

test('the map has one stop of the Tab key, moves by arrows and has a table beside it', async () => {
  serve(answers);
  open('/w/harbour/insights?period=24h');
  const user = userEvent.setup();
  const map = await screen.findByRole('table', { name: /Calls by step and duration/ }, patient);
  const cells = within(map).getAllByRole('link');
  expect(cells.map((cell) => cell.getAttribute('tabindex')).sort()).toEqual(['-1', '-1', '0']);
  const first = within(map).getByRole('link', { name: /^49 calls of 33 ms to 66 ms/ });
  first.focus();
  await user.keyboard('{ArrowDown}');
  expect(document.activeElement?.getAttribute('aria-label')).toMatch(/^150 calls of 8.2 ms to 16 ms/);
  await user.keyboard('{ArrowRight}');
  expect(document.activeElement?.getAttribute('aria-label')).toMatch(/^1 call of 16 ms to 33 ms/);
  expect(addressOf(document.activeElement as HTMLElement).searchParams.get('dur')).toBe('16.384ms..32.768ms');
  await user.click(screen.getByRole('button', { name: 'Show as a table' }));
  const table = await screen.findByRole('table', { name: 'Durations over time' });
  expect(
    within(table)
      .getAllByRole('link')
      .map((link) => link.textContent),
  ).toEqual(['1', '49', '150']);
}, 40_000);

test('causes and people lead to their calls, and say what was not read', async () => {
  serve(answers);
  open('/w/harbour/insights?period=24h&client=Claude');
  const reason = await screen.findByRole('link', { name: 'The API answered 503.' }, patient);
  expect(addressOf(reason).pathname).toBe('/w/harbour/calls');
  expect(Object.fromEntries(addressOf(reason).searchParams)).toEqual({
    tool: 'get_port',
    server: 'ports',
    client: 'Claude',
    outcome: 'tool_error',
    error: 'The API answered 503.',
    from: '2025-12-30T08:00:00.123Z',
    to: '2026-01-01T10:00:00.124Z',
  });
  expect(screen.getByRole('link', { name: 'Internal error' })).toBeTruthy();
  const ann = await screen.findByRole('link', { name: 'Ann' });
  expect(Object.fromEntries(addressOf(ann).searchParams)).toEqual({
    client: 'Claude',
    user: 'usr_1',
    // The period, from where the log was read on.
    from: '2026-01-01T06:00:00Z',
    to: '2026-01-02T00:00:00Z',
  });
  expect(screen.getByText('12.3K')).toBeTruthy();
  expect(screen.getByText('A former member')).toBeTruthy();
  expect(screen.getByText('Service accounts')).toBeTruthy();
  expect(screen.getByText(/^Calls since .*: the log has too many older ones/)).toBeTruthy();
}, 40_000);

test('a period without failures says so', async () => {
  serve({ ...answers, [`GET ${path}/errors`]: { body: { items: [] } } });
  open('/w/harbour/insights');
  expect(await screen.findByText('No call of this period failed.', {}, patient)).toBeTruthy();
}, 40_000);

test('a change is a share of the period before, and bytes have their unit', () => {
  expect(changeOf(150, 100)).toBe('+50 %');
  expect(changeOf(50, 100)).toBe('-50 %');
  expect(changeOf(5, 0)).toBeUndefined();
  expect([0, 999, 1_400_000, 250_000_000].map(formatBytes)).toEqual(['0 B', '999 B', '1.4 MB', '250 MB']);
});

test('numbers lead to the calls behind them, and names narrow the page', async () => {
  serve(answers);
  const { router } = open('/w/harbour/insights?period=24h');
  const user = userEvent.setup();
  const calls = await screen.findByRole('link', { name: '200 calls of get_port' }, patient);
  const href = new URL(calls.getAttribute('href') ?? '', 'http://localhost');
  expect(href.pathname).toBe('/w/harbour/calls');
  expect(href.searchParams.get('tool')).toBe('get_port');
  expect(href.searchParams.get('from')).toContain('2026-01-01');
  expect(screen.getByText('5.0 %')).toBeTruthy();
  const answersTile = screen.getByText('Answers', { selector: 'dt' }).parentElement;
  expect([...(answersTile?.querySelectorAll('dd') ?? [])].map((one) => one.textContent)).toEqual([
    '1.4 MB',
    '0 % before: 1.4 MB',
    'about 350K tokens',
  ]);
  expect(screen.getAllByText('+100 %').length).toBeGreaterThan(0);
  await user.click(screen.getByRole('link', { name: 'Claude' }));
  await waitFor(() => expect(router.state.location.search).toEqual({ client: 'Claude', period: '24h' }));
  await user.click(await screen.findByRole('button', { name: 'Remove the filter client' }, patient));
  await waitFor(() => expect(router.state.location.search).toEqual({ period: '24h' }));
  await user.click(screen.getByRole('radio', { name: '7d' }));
  await waitFor(() => expect(router.state.location.search).toEqual({ period: '7d' }));
}, 40_000);

test('a period without calls says so', async () => {
  const none = { calls: 0, errors: 0, rejected: 0, bytes_in: 0, bytes_out: 0, tokens_out: 0 };
  const body = {
    ...insights,
    total: none,
    before: none,
    steps: [],
    tools: [],
    servers: [],
    clients: [],
    outcomes: [],
  };
  serve({ 'GET /api/v1/me': { body: me }, [`GET ${path}`]: { body } });
  open('/w/harbour/insights');
  expect(await screen.findByText('No calls in this period', {}, patient)).toBeTruthy();
}, 40_000);
