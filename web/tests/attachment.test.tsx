import { notifications } from '@mantine/notifications';
import { screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import { isAttached } from '../src/api/attachments';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, serve } from './server';

const source: Schemas['Source'] = {
  id: 'src_9',
  name: 'office-files',
  kind: 'mcp',
  base_url: 'https://office-files.attached.invalid/mcp',
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
  hold_changes: true,
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

const away: Schemas['Attachment'] = {
  name: 'office-files',
  address: 'https://mcp.example.com/t/harbour/mcp',
  key_hint: 'mcpa_abcd',
  key_created_at: '2026-01-01T00:00:00Z',
  programs: [],
};

const made: Schemas['AttachmentKey'] = { key: 'mcpa_secret', address: away.address };

const patience = { timeout: 20_000 };

afterEach(() => notifications.clean());

const pages = (attachment: Schemas['Attachment']) => ({
  'GET /api/v1/me': { body: me },
  'GET /api/v1/workspaces/harbour/sources/src_9': { body: source },
  'GET /api/v1/workspaces/harbour/sources/src_9/tools': { body: { items: [] } },
  'GET /api/v1/workspaces/harbour/sources/src_9/upstream': { body: upstream },
  'GET /api/v1/workspaces/harbour/sources/src_9/attachment': { body: attachment },
});

test('a private server gets a name, and its key is shown once', { timeout: 60_000 }, async () => {
  const user = userEvent.setup();
  const received = serve({
    ...pages(away),
    'POST /api/v1/workspaces/harbour/attachments': { status: 201, body: { source, key: made } },
  });
  open('/w/harbour/sources/attach');
  const name = await screen.findByLabelText(/Name/, undefined, patience);
  await user.type(name, 'Office Files');
  await user.click(screen.getByRole('button', { name: 'Create key' }));
  await screen.findByText(/Use lower-case letters/);
  await user.clear(name);
  await user.type(name, 'office-files');
  await user.click(screen.getByRole('button', { name: 'Create key' }));
  await screen.findByText('mcpa_secret', undefined, patience);
  screen.getByText(/portolan attach https:\/\/mcp\.example\.com\/t\/harbour\/mcp -- COMMAND/);
  await user.click(screen.getByRole('button', { name: 'Done' }));
  await screen.findByText('Not connected', undefined, patience);
  const added = received.find((one) => one.method === 'POST');
  expect(added?.body).toEqual({ name: 'office-files', hold_changes: true });
});

test('the page shows the programs that offer a server, and their fault', { timeout: 60_000 }, async () => {
  serve(
    pages({
      ...away,
      programs: [
        {
          version: 'portolan-attach/0.1.0',
          connections: 3,
          is_ready: false,
          error: 'The command ended by itself (exit status: 7).',
          since: '2026-01-01T00:00:00Z',
        },
      ],
    }),
  );
  open('/w/harbour/sources/src_9?tab=server');
  await screen.findByText('Connected', undefined, patience);
  screen.getByText('1 program offers this server.');
  screen.getByText('The command ended by itself (exit status: 7).');
  screen.getByText('not ready');
  screen.getByText('portolan-attach/0.1.0');
});

test('only the address of an attached server counts as one', () => {
  expect(isAttached(source.base_url)).toBe(true);
  expect(isAttached('https://attached.invalid.example.com/mcp')).toBe(false);
  expect(isAttached('not an address')).toBe(false);
});
