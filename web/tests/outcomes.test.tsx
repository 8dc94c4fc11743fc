// Calls are counted and coloured in one way, in charts and in tables.
import { screen, within } from '@testing-library/react';
import { expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { counted, outcomes, verdicts } from '../src/outcomes';
import { open } from './page';
import { me, serve } from './server';

const patient = { timeout: 15_000 };
const base = '/api/v1/workspaces/harbour';

test('every outcome is counted as the table shows it', () => {
  const calls = Object.values(outcomes);
  const of = (verdict: string) => calls.filter((one) => one.verdict === verdict).length;
  const shown = counted({ calls: calls.length, errors: of('failed'), rejected: of('rejected') });
  expect(shown.map(({ name, value }) => [name, value])).toEqual([
    ['Succeeded', 1],
    ['Rejected', 1],
    ['Failed', 3],
  ]);
  expect(new Set(Object.values(verdicts).map((one) => one.color)).size).toBe(3);
});

test('rejected calls are no failed calls on the overview', async () => {
  const hour = '2026-11-24T10:00:00Z';
  const call = (outcome: Schemas['CallLog']['outcome']): Schemas['CallLog'] => ({
    id: outcome,
    at: hour,
    tool_name: outcome,
    outcome,
    duration_ms: 3,
    weight: 1,
  });
  const overview: Schemas['Overview'] = {
    sources: 1,
    tools_enabled: 1,
    servers_published: 1,
    calls_24h: {
      total: 9,
      errors: 2,
      rejected: 3,
      by_hour: [{ hour, calls: 9, errors: 2, rejected: 3 }],
    },
    recent_calls: [call('ok'), call('tool_error'), call('invalid_arguments')],
    refused_credentials: [],
    setup: { has_source: true, has_credential: true, has_server: true, has_call: true },
  };
  serve({ 'GET /api/v1/me': { body: me }, [`GET ${base}/overview`]: { body: overview } });
  const { container } = open('/w/harbour');
  await screen.findByText('Failed 2', {}, patient);
  const swatch = (text: string) => screen.getByText(text).style.getPropertyValue('--swatch');
  expect(swatch('Succeeded 4')).toBe(verdicts.succeeded.color);
  expect(swatch('Rejected 3')).toBe(verdicts.rejected.color);
  expect(swatch('Failed 2')).toBe(verdicts.failed.color);
  const table = within(screen.getByRole('table', { name: 'Recent calls' }));
  const tone = (text: string) => table.getByText(text).getAttribute('data-tone');
  expect([tone('Succeeded'), tone('API error'), tone('Rejected: invalid arguments')]).toEqual([
    'succeeded',
    'failed',
    'rejected',
  ]);
  const drawn = [...container.querySelectorAll<HTMLElement>('[aria-hidden] span')].filter((one) =>
    one.style.getPropertyValue('--share'),
  );
  expect(drawn.map((one) => one.style.getPropertyValue('--share'))).toEqual(['4', '3', '2']);
});
