// Lists that keep up with time and with the address.
import { act, screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import type { Schemas } from '../src/api/http';
import { Ago } from '../src/components/ago';
import { labelled, scale } from '../src/components/bars';
import { alone, open } from './page';
import { me, serve } from './server';

const patient = { timeout: 15_000 };
const base = '/api/v1/workspaces/harbour';

afterEach(() => {
  vi.useRealTimers();
});

test('REVIEW-UX-BUG-14: a time goes on while the page is open', async () => {
  // From now on: the component shows no time before that at which it was loaded.
  const now = Date.now();
  vi.useFakeTimers({ shouldAdvanceTime: true, now });
  alone(<Ago at={new Date(now - 10_000).toISOString()} />);
  await screen.findByText('just now');
  await act(() => vi.advanceTimersByTimeAsync(120_000));
  expect(screen.getByText('2 minutes ago')).toBeTruthy();
});

const call = (tool_name: string): Schemas['CallLog'] => ({
  id: tool_name,
  at: '2026-01-01T00:00:00Z',
  tool_name,
  duration_ms: 5,
  weight: 1,
  outcome: 'ok',
});

test('REVIEW-UX-BUG-14: the calls are read again while they are looked at', async () => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  const items = [call('first')];
  const received = serve({
    'GET /api/v1/me': { body: me },
    [`GET ${base}/calls`]: () => ({ body: { items: [...items] } }),
  });
  open('/w/harbour/calls');
  await screen.findByText('first', {}, patient);
  items.unshift(call('second'));
  await act(() => vi.advanceTimersByTimeAsync(6_000));
  await screen.findByText('second', {}, patient);
  expect(received.filter((one) => one.path.endsWith('/calls')).length).toBeGreaterThan(1);
});

const tool = (name: string, enabled: boolean): Schemas['ToolSummary'] => ({
  id: name,
  name,
  title: '',
  description: '',
  method: 'GET',
  path: `/${name}`,
  source_id: 'src_1',
  source_name: 'Shop',
  enabled,
  state: 'active',
  customised: false,
  annotations: { destructiveHint: false, idempotentHint: false, openWorldHint: false, readOnlyHint: true },
  used_by_servers: [],
});

test('REVIEW-UX-BUG-23: the search and the filter of the tools stand in the address, and are read from it', async () => {
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${base}/tools`]: {
      body: { items: [tool('orders', true), tool('orders_old', false), tool('ships', true)] },
    },
  });
  const { router } = open('/w/harbour/tools?show=enabled');
  const user = userEvent.setup();
  await screen.findByRole('link', { name: 'ships' }, patient);
  expect(screen.queryByRole('link', { name: 'orders_old' })).toBeNull();
  await user.type(screen.getByRole('textbox', { name: 'Search tools' }), 'orders');
  await waitFor(() => expect(router.state.location.search).toEqual({ show: 'enabled', q: 'orders' }));
  expect(screen.queryByRole('link', { name: 'ships' })).toBeNull();
});

test('a change of the selection is announced: its count stands in a live region from the beginning', async () => {
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${base}/tools`]: { body: { items: [tool('orders', true), tool('ships', true)] } },
  });
  open('/w/harbour/tools');
  const user = userEvent.setup();
  await screen.findByRole('link', { name: 'ships' }, patient);
  const status = screen.getByText(/selected$/);
  expect(status.getAttribute('role')).toBe('status');
  expect(status.getAttribute('aria-live')).toBe('polite');
  expect(status.textContent).toBe('0 of 2 selected');
  await user.click(screen.getByRole('checkbox', { name: 'Select all' }));
  expect(status.textContent).toBe('2 of 2 selected');
  expect(status.isConnected).toBe(true);
});

test('REVIEW-UX-BUG-24: the title of a document and its format are two facts', async () => {
  const source: Schemas['Source'] = {
    id: 'src_1',
    name: 'Harbour',
    kind: 'openapi',
    base_url: 'https://api.example.org',
    settings: { timeout_ms: 30_000, max_response_bytes: 1_048_576, follow_redirects: 'none' },
    tool_count: 1,
    enabled_tool_count: 1,
    security: [],
    spec_title: 'Harbour',
    spec_version: '3.1.0',
    created_at: '2026-01-01T00:00:00Z',
    updated_at: '2026-01-01T00:00:00Z',
  };
  serve({ 'GET /api/v1/me': { body: me }, [`GET ${base}/sources/src_1`]: { body: source } });
  open('/w/harbour/sources/src_1?tab=settings');
  expect(await screen.findByText('OpenAPI 3.1.0', {}, patient)).toBeTruthy();
  expect(screen.queryByText('Harbour 3.1.0')).toBeNull();
});

test('the scale of a chart has whole steps, and its last bar has a label', () => {
  expect(scale(0)).toEqual([0, 1]);
  expect(scale(3)).toEqual([0, 1, 2, 3]);
  expect(scale(870)).toEqual([0, 500, 1000]);
  expect(scale(1234)).toEqual([0, 500, 1000, 1500]);
  expect(labelled(24)).toEqual([3, 7, 11, 15, 19, 23]);
  expect(labelled(72).at(-1)).toBe(71);
});
