import { notifications } from '@mantine/notifications';
import { screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, refusal, serve } from './server';

const source: Schemas['Source'] = {
  id: 'src_9',
  name: 'Weather',
  kind: 'mcp',
  base_url: 'https://mcp.example.org/mcp',
  settings: { timeout_ms: 30000, max_response_bytes: 1048576, follow_redirects: 'none' },
  tool_count: 0,
  enabled_tool_count: 0,
  credential: null,
  security: [],
  created_at: '2026-01-01T00:00:00Z',
  updated_at: '2026-01-01T00:00:00Z',
};

const upstream: Schemas['Upstream'] = {
  prefix: '',
  hold_changes: false,
  revision: null,
  server_name: null,
  server_version: null,
  instructions: null,
  capabilities: [],
  prompts: [],
  resources: [],
  skipped: [],
  pending: null,
  last_error: null,
  checked_at: null,
  synced_at: null,
};

const unconnected: Schemas['SignInView'] = {
  sharing: 'person',
  method: 'code',
  scope: null,
  client: null,
  connection: null,
  linked_persons: 0,
  redirect_uri: 'https://portolan.example/connect/callback/src_9',
};

const connected: Schemas['SignInView'] = {
  ...unconnected,
  sharing: 'workspace',
  client: { client_id: 'c-1', kind: 'registered', issuer: 'https://login.example.org' },
  connection: {
    status: 'ok',
    reason: null,
    issuer: 'https://login.example.org',
    scope: 'read',
    wanted_scope: 'read write',
    renewable: true,
    expires_at: '2026-01-01T01:00:00Z',
    connected_at: '2026-01-01T00:00:00Z',
    refreshed_at: null,
    connected_by: 'Ada',
  },
};

// Messages outlive the page that showed them.
afterEach(() => notifications.clean());

// The page is loaded when it is needed, which takes its time on a busy machine.
const patience = { timeout: 20_000 };

test('a server that wants a sign-in is added first; what is missing is said on its page', {
  timeout: 60_000,
}, async () => {
  const user = userEvent.setup();
  const received = serve({
    'GET /api/v1/me': { body: me },
    'POST /api/v1/workspaces/harbour/upstreams/preview': refusal(422, {
      code: 'upstream_wants_sign_in',
      message: 'It wants a sign-in.',
    }),
    'POST /api/v1/workspaces/harbour/upstreams': { status: 201, body: source },
    'POST /api/v1/workspaces/harbour/sources/src_9/account': refusal(422, {
      code: 'client_needed',
      message: 'Enter a client id.',
    }),
    'GET /api/v1/workspaces/harbour/sources/src_9': { body: source },
    'GET /api/v1/workspaces/harbour/sources/src_9/tools': { body: { items: [] } },
    'GET /api/v1/workspaces/harbour/sources/src_9/upstream': { body: upstream },
    'GET /api/v1/workspaces/harbour/sources/src_9/sign-in': { body: unconnected },
  });
  open('/w/harbour/sources/upstream');
  await user.type(await screen.findByLabelText(/Address/, undefined, patience), source.base_url);
  await user.click(screen.getByRole('button', { name: 'Connect and preview' }));
  await user.click(await screen.findByText('Each user connects their own', undefined, patience));
  await user.click(screen.getByRole('button', { name: 'Add server and sign in' }));
  await screen.findByText('No account connected', undefined, patience);
  screen.getByText('0 users have connected an account.');
  screen.getByText(unconnected.redirect_uri);
  const added = received.find((one) => one.method === 'POST' && one.path.endsWith('/upstreams'));
  expect(added?.body).toEqual({ url: source.base_url, sign_in: 'person', hold_changes: true });
});

test('the connected account is shown, with what the server wants beyond it, and disconnected', {
  timeout: 60_000,
}, async () => {
  const user = userEvent.setup();
  const received = serve({
    'GET /api/v1/me': { body: me },
    'GET /api/v1/workspaces/harbour/sources/src_9': { body: source },
    'GET /api/v1/workspaces/harbour/sources/src_9/tools': { body: { items: [] } },
    'GET /api/v1/workspaces/harbour/sources/src_9/upstream': { body: upstream },
    'GET /api/v1/workspaces/harbour/sources/src_9/sign-in': { body: connected },
    'DELETE /api/v1/workspaces/harbour/sources/src_9/account': { status: 204 },
  });
  open('/w/harbour/sources/src_9?tab=credential');
  await screen.findByText('Connected account', undefined, patience);
  screen.getByText('login.example.org');
  screen.getByText('read write');
  screen.getByRole('button', { name: 'Reconnect' });
  await user.click(screen.getByRole('button', { name: 'Disconnect' }));
  await waitFor(() => expect(received.some((one) => one.method === 'DELETE')).toBe(true), patience);
});
