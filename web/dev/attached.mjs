// An attached server and the programs that offer it.
const ago = (minutes) => new Date(Date.now() - minutes * 60_000).toISOString();

export const attachedSource = {
  id: 'src_0192c',
  name: 'office-files',
  kind: 'mcp',
  base_url: 'https://office-files.attached.invalid/mcp',
  settings: { timeout_ms: 30000, max_response_bytes: 1048576, follow_redirects: 'none' },
  credential: null,
  security: [],
  created_at: ago(6000),
  updated_at: ago(90),
};

const address = 'https://mcp.nordhavn.example/t/nordhavn/attach';
const key = { key: 'mcpa_7YcQ2mVx0dJrT5uKfW9bNzE3hLsA8gPq', address };
const attachment = {
  name: 'office-files',
  address,
  key_hint: 'mcpa_7YcQ2m',
  key_created_at: ago(6000),
  programs: [
    { version: '0.1.0', is_ready: true, connections: 2, since: ago(340) },
    {
      version: '0.1.0',
      is_ready: false,
      connections: 2,
      since: ago(12),
      error: 'The command “office-files --stdio” ended with status 1.',
    },
  ],
};
const upstream = {
  prefix: '',
  hold_changes: true,
  revision: '2025-11-25',
  server_name: 'office-files',
  server_version: '3.2.0',
  instructions: 'Reads the shared folder of the office.',
  capabilities: ['tools', 'resources'],
  prompts: [],
  resources: ['office:///tariffs.csv'],
  skipped: [],
  pending: null,
  last_error: null,
  checked_at: ago(2),
  synced_at: ago(90),
};

export const routes = [
  ['GET', '/workspaces/:ws/sources/:id/attachment', () => attachment],
  ['POST', '/workspaces/:ws/sources/:id/attachment/key', () => key],
  ['POST', '/workspaces/:ws/attachments', () => ({ source: attachedSource, key })],
  ['GET', '/workspaces/:ws/sources/:id/upstream', () => upstream],
];
