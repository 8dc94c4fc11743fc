import { notifications } from '@mantine/notifications';
import { screen, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, refusal, serve } from './server';

const preview: Schemas['UpstreamPreview'] = {
  revision: '2025-11-25',
  server_name: 'Weather',
  server_version: '2.1',
  instructions: 'Ask for a place.',
  tools: [
    { name: 'forecast', title: 'Forecast', description: 'Tomorrow.', warnings: [] },
    { name: 'delete_station', title: '', description: 'Removes a station.', warnings: ['A note.'] },
  ],
  prompts: [{ name: 'plan_a_trip', title: '', description: '' }],
  resources: [{ kind: 'resource', uri: 'weather://stations', name: 'stations' }],
  skipped: ['The tool `odd` has no input schema of type `object`.'],
};

const source: Schemas['Source'] = {
  id: 'src_9',
  name: 'Weather',
  kind: 'mcp',
  base_url: 'https://mcp.example.org/mcp',
  settings: { timeout_ms: 30000, max_response_bytes: 1048576, follow_redirects: 'none' },
  tool_count: 2,
  enabled_tool_count: 1,
  credential: null,
  security: [],
  created_at: '2026-01-01T00:00:00Z',
  updated_at: '2026-01-01T00:00:00Z',
};

const upstream: Schemas['Upstream'] = {
  prefix: '',
  hold_changes: true,
  revision: '2025-11-25',
  server_name: 'Weather',
  server_version: '2.1',
  instructions: null,
  capabilities: ['tools', 'prompts'],
  prompts: ['plan_a_trip'],
  resources: [],
  skipped: [],
  pending: {
    digest: 'd1',
    found_at: '2026-01-01T00:00:00Z',
    changes: [
      { kind: 'tool', name: 'alerts', change: 'added', what: [], used_by_servers: [] },
      { kind: 'tool', name: 'forecast', change: 'removed', what: [], used_by_servers: ['public'] },
    ],
  },
  last_error: null,
  checked_at: '2026-01-01T00:00:00Z',
  synced_at: '2026-01-01T00:00:00Z',
};

// Messages outlive the page that showed them.
afterEach(() => notifications.clean());

// The page is loaded when it is needed, which takes its time on a busy machine.
const patience = { timeout: 20_000 };

test('a server is looked at, its tools are chosen, and it is added', { timeout: 60_000 }, async () => {
  const user = userEvent.setup();
  const received = serve({
    'GET /api/v1/me': { body: me },
    'POST /api/v1/workspaces/harbour/upstreams/preview': { body: preview },
    'POST /api/v1/workspaces/harbour/upstreams': { status: 201, body: source },
    'GET /api/v1/workspaces/harbour/sources/src_9': { body: source },
    'GET /api/v1/workspaces/harbour/sources/src_9/tools': { body: { items: [] } },
    'GET /api/v1/workspaces/harbour/sources/src_9/upstream': { body: upstream },
  });
  open('/w/harbour/sources/upstream');
  await user.type(
    await screen.findByLabelText(/Address/, undefined, patience),
    'https://mcp.example.org/mcp',
  );
  await user.click(screen.getByRole('button', { name: 'Connect and preview' }));
  await screen.findByText('2 tools, 2 selected', undefined, patience);
  screen.getByText(/has no input schema/);
  await user.click(screen.getByRole('checkbox', { name: 'delete_station' }));
  await user.click(screen.getByRole('button', { name: 'Add server' }));
  await screen.findByRole('heading', { name: 'Weather' }, patience);
  const added = received.find((one) => one.method === 'POST' && one.path.endsWith('/upstreams'));
  expect(added?.body).toEqual({
    name: 'Weather',
    url: 'https://mcp.example.org/mcp',
    prefix: '',
    hold_changes: true,
    tools: ['forecast'],
  });
});

test('a server that cannot be used keeps its address and says why', { timeout: 60_000 }, async () => {
  const user = userEvent.setup();
  serve({
    'GET /api/v1/me': { body: me },
    'POST /api/v1/workspaces/harbour/upstreams/preview': refusal(422, {
      code: 'upstream_unusable',
      message: 'This address could not be used as an MCP server: could not connect to mcp.example.org.',
      field: 'url',
    }),
  });
  open('/w/harbour/sources/upstream');
  const address = await screen.findByLabelText(/Address/, undefined, patience);
  await user.type(address, 'https://mcp.example.org/mcp');
  await user.click(screen.getByRole('button', { name: 'Connect and preview' }));
  expect((await screen.findByRole('alert')).textContent).toContain('could not connect to mcp.example.org');
  expect((address as HTMLInputElement).value).toBe('https://mcp.example.org/mcp');
});

test('changes that wait are shown with who loses them, and are agreed to by their name', {
  timeout: 60_000,
}, async () => {
  const user = userEvent.setup();
  const received = serve({
    'GET /api/v1/me': { body: me },
    'GET /api/v1/workspaces/harbour/sources/src_9': { body: source },
    'GET /api/v1/workspaces/harbour/sources/src_9/upstream': { body: upstream },
    'POST /api/v1/workspaces/harbour/sources/src_9/sync': {
      body: { held: false, changes: [], upstream: { ...upstream, pending: null } },
    },
  });
  open('/w/harbour/sources/src_9?tab=server');
  const changes = await screen.findByRole('table', { name: 'Changes' }, patience);
  within(changes).getByText('public');
  await user.click(screen.getByRole('button', { name: 'Approve changes' }));
  await screen.findByText('Changes published.');
  expect(received.find((one) => one.path.endsWith('/sync'))?.body).toEqual({ agreed: 'd1' });
});
