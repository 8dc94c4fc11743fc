// Insights: numbers with those of the period before, and ways to the calls behind them.
import { screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { changeOf } from '../src/components/insights-tiles';
import { formatBytes } from '../src/time';
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
  steps: [{ at: '2026-01-01T00:00:00Z', ...measured }],
  tools: [{ name: 'get_port', ...measured, calls_before: 100 }],
  servers: [{ name: '', ...measured, calls_before: 0 }],
  clients: [{ name: 'Claude', ...measured, calls_before: 250 }],
  outcomes: [{ name: 'upstream_error', ...measured, calls_before: 200 }],
};

test('a change is a share of the period before, and bytes have their unit', () => {
  expect(changeOf(150, 100)).toBe('+50 %');
  expect(changeOf(50, 100)).toBe('-50 %');
  expect(changeOf(5, 0)).toBeUndefined();
  expect([0, 999, 1_400_000, 250_000_000].map(formatBytes)).toEqual(['0 B', '999 B', '1.4 MB', '250 MB']);
});

test('numbers lead to the calls behind them, and names narrow the page', async () => {
  serve({ 'GET /api/v1/me': { body: me }, [`GET ${path}`]: { body: insights } });
  const { router } = open('/w/harbour/insights?period=24h');
  const user = userEvent.setup();
  const calls = await screen.findByRole('link', { name: '200 calls of get_port' }, patient);
  const href = new URL(calls.getAttribute('href') ?? '', 'http://localhost');
  expect(href.pathname).toBe('/w/harbour/calls');
  expect(href.searchParams.get('tool')).toBe('get_port');
  expect(href.searchParams.get('from')).toContain('2026-01-01');
  expect(screen.getByText('5.0 %')).toBeTruthy();
  expect(screen.getAllByText('+100 %').length).toBeGreaterThan(0);
  await user.click(screen.getByRole('link', { name: 'Claude' }));
  await waitFor(() => expect(router.state.location.search).toEqual({ client: 'Claude', period: '24h' }));
  await user.click(await screen.findByRole('button', { name: 'Remove the filter client' }, patient));
  await waitFor(() => expect(router.state.location.search).toEqual({ period: '24h' }));
  await user.click(screen.getByRole('radio', { name: '7d' }));
  await waitFor(() => expect(router.state.location.search).toEqual({ period: '7d' }));
}, 40_000);

test('a period without calls says so', async () => {
  const none = { calls: 0, errors: 0, rejected: 0, bytes_in: 0, bytes_out: 0 };
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
