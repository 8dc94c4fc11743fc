import { screen, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { CredentialStatus, shortTime } from '../src/components/credential-state';
import { alone, open } from './page';
import { me, serve } from './server';

const at = new Date().toISOString();
const states: [Schemas['CredentialState'], string, string][] = [
  [{ state: 'never_tried' }, 'Never tried', 'quiet'],
  [{ state: 'works', at }, 'Works · just now', 'good'],
  [{ state: 'refused', status: 401, at }, `Refused 401 at ${shortTime(at)}`, 'bad'],
  [{ state: 'inconclusive', reason: 'No answer.', at }, 'Could not be tested', 'warn'],
];

test.each(states)('the badge of %o', async (state, words, tone) => {
  const { container } = alone(<CredentialStatus state={state} />);
  await screen.findByText((_, element) => element?.getAttribute('data-tone') === tone);
  expect(container.textContent).toBe(words);
});

test('a time of another day has its date', () => {
  expect(shortTime('2020-05-04T12:00:00Z')).toContain('2020');
  expect(shortTime(at)).not.toContain(String(new Date().getFullYear()));
});

const source = (state: Schemas['CredentialState']): Schemas['Source'] => ({
  id: 'src_1',
  name: 'Orders',
  kind: 'openapi',
  base_url: 'https://api.example.org',
  settings: { timeout_ms: 1, max_response_bytes: 1, follow_redirects: 'none' },
  tool_count: 2,
  enabled_tool_count: 1,
  credential: { kind: 'api_key', hint: 'X-Key: ••••cret', updated_at: at, state },
  security: [],
  created_at: at,
  updated_at: at,
});
const refused: Schemas['CredentialState'] = { state: 'refused', status: 401, at };
const title = `The API refused the credential of Orders (401, ${shortTime(at)})`;

const overview = (refused_credentials: Schemas['RefusedCredential'][]): Schemas['Overview'] => ({
  sources: 1,
  tools_enabled: 1,
  servers_published: 1,
  calls_24h: { total: 0, errors: 0, rejected: 0, by_hour: [] },
  recent_calls: [],
  refused_credentials,
  setup: { has_source: true, has_credential: true, has_server: true, has_call: true },
});

test('the overview says which credential is refused, and leads to where it is replaced', async () => {
  const one = { source_id: 'src_1', source_name: 'Orders', status: 401, at };
  serve({
    'GET /api/v1/me': { body: me },
    'GET /api/v1/workspaces/harbour/overview': { body: overview([one]) },
  });
  open('/w/harbour');
  expect(await screen.findByText(title)).toBeTruthy();
  const link = screen.getByRole('link', { name: 'Replace the credential' });
  expect(link.getAttribute('href')).toBe('/w/harbour/sources/src_1?tab=credential');
});

test('a member who may not edit is told who can', async () => {
  const one = { source_id: 'src_1', source_name: 'Orders', status: 403, at };
  const workspaces = [{ id: 'ten_1', slug: 'harbour', name: 'Harbour', role: 'viewer' }];
  serve({
    'GET /api/v1/me': { body: { ...me, workspaces } },
    'GET /api/v1/workspaces/harbour/overview': { body: overview([one]) },
  });
  open('/w/harbour');
  expect(await screen.findByText(/A developer, admin or owner/)).toBeTruthy();
  expect(screen.queryByRole('link', { name: 'Replace the credential' })).toBeNull();
});

test('list and page of a source show the state, and the test is run again', async () => {
  const user = userEvent.setup();
  let state: Schemas['CredentialState'] = refused;
  const received = serve({
    'GET /api/v1/me': { body: me },
    'GET /api/v1/workspaces/harbour/sources': () => ({ body: { items: [source(state)] } }),
    'GET /api/v1/workspaces/harbour/sources/src_1': () => ({ body: source(state) }),
    'POST /api/v1/workspaces/harbour/sources/src_1/credential/test': () => {
      state = { state: 'works', at };
      return { body: { credential: source(state).credential } };
    },
  });
  const { router } = open('/w/harbour/sources');
  const row = (await screen.findByRole('link', { name: 'Orders' })).closest('tr');
  expect(within(row as HTMLElement).getByText(/^Refused 401 at /)).toBeTruthy();
  await router.navigate({
    to: '/w/$ws/sources/$id',
    params: { ws: 'harbour', id: 'src_1' },
    search: { tab: 'credential' },
  });
  await user.click(await screen.findByRole('button', { name: 'Test credential' }));
  expect(await screen.findByText('The API accepts this credential.')).toBeTruthy();
  expect(screen.queryByText(/^Refused/)).toBeNull();
  expect(received.filter((one) => one.path.endsWith('/credential/test'))).toHaveLength(1);
});
