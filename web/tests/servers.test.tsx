import { notifications } from '@mantine/notifications';
import { screen, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, refusal, serve } from './server';

vi.setConfig({ testTimeout: 30_000 });

afterEach(() => notifications.clean());

// The pages are loaded when they are needed, which takes its time on a busy machine.
const patient = { timeout: 20_000 };
const path = '/api/v1/workspaces/harbour';
const short = 'https://example.org/t/harbour/mcp';

function server(slug: string, name: string): Schemas['Server'] {
  return {
    id: `srv_${slug}`,
    slug,
    name,
    status: 'published',
    url: `https://example.org/t/harbour/${slug}/mcp`,
    tool_count: 1,
    created_at: '2026-01-01T00:00:00Z',
    updated_at: '2026-01-01T00:00:00Z',
  };
}

/** The API with two servers; `first` is the default one. */
function harbour(role: Schemas['Role'], first: string | null = 'srv_fleet') {
  let chosen = first;
  const listed = () =>
    [server('fleet', 'Fleet'), server('crews', 'Crews')].map((one) =>
      one.id === chosen ? { ...one, workspace_url: short } : one,
    );
  return {
    'GET /api/v1/me': { body: { ...me, workspaces: me.workspaces.map((one) => ({ ...one, role })) } },
    [`GET ${path}/servers`]: () => ({ body: { items: listed() } }),
    [`PUT ${path}/default-server`]: (request: { body: unknown }) => {
      chosen = (request.body as Schemas['DefaultServer']).server_id;
      return { status: 204 };
    },
  };
}

const choice = () => screen.findByRole<HTMLInputElement>('combobox', { name: 'Default server' }, patient);
const row = (name: string) => {
  const table = screen.getByRole('table', { name: 'Servers' });
  const link = within(table).getByRole('link', { name });
  return within(link.closest('tr') as HTMLTableRowElement);
};

async function choose(user: ReturnType<typeof userEvent.setup>, name: string) {
  await user.click(await choice());
  await user.click(await screen.findByRole('option', { name, hidden: true }, patient));
}

test('the default server is named, and an admin chooses another or none', async () => {
  const received = serve(harbour('admin'));
  open('/w/harbour/servers');
  const user = userEvent.setup();
  expect((await choice()).value).toBe('Fleet');
  expect(row('Fleet').getByText('Default server')).toBeTruthy();
  expect(row('Crews').queryByText('Default server')).toBeNull();

  await choose(user, 'Crews');
  expect(await screen.findByText(/Default server changed/, {}, patient)).toBeTruthy();
  expect((await choice()).value).toBe('Crews');
  expect(row('Crews').getByText('Default server')).toBeTruthy();
  expect(row('Fleet').queryByText('Default server')).toBeNull();

  await choose(user, 'No server');
  expect(await screen.findByText(/points to no server now/, {}, patient)).toBeTruthy();
  expect(row('Crews').queryByText('Default server')).toBeNull();
  const bodies = received.filter((one) => one.method === 'PUT').map((one) => one.body);
  expect(bodies).toEqual([{ server_id: 'srv_crews' }, { server_id: null }]);
});

test('a refusal leaves the choice as it was and says why', async () => {
  serve({
    ...harbour('admin'),
    [`PUT ${path}/default-server`]: refusal(404, { code: 'not_found', message: 'This server is gone.' }),
  });
  open('/w/harbour/servers');
  const user = userEvent.setup();
  await choose(user, 'Crews');
  const alert = await screen.findByRole('alert', {}, patient);
  expect(alert.textContent).toContain('This server is gone.');
  expect((await choice()).value).toBe('Fleet');
});

test('a developer sees the default server and cannot choose', async () => {
  serve(harbour('developer'));
  open('/w/harbour/servers');
  expect(await choice()).toHaveProperty('disabled', true);
  expect(screen.getByText('An admin or owner can change this.')).toBeTruthy();
});

test('how to connect to the default server is told for both of its URLs', async () => {
  const client = (snippet: string): Schemas['ClientConnection'] => ({
    client: 'claude',
    label: 'Claude',
    steps: ['Paste the URL.'],
    snippet,
    language: 'text',
  });
  const fleet = { ...server('fleet', 'Fleet'), workspace_url: short };
  const connection: Schemas['Connection'] = {
    url: fleet.url,
    clients: [client(fleet.url)],
    short: { url: short, clients: [client(short)] },
  };
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}/servers/srv_fleet`]: {
      body: { ...fleet, tools: [], prompts: [], resources: [], warnings: [] },
    },
    [`GET ${path}/servers/srv_fleet/connection`]: { body: connection },
    [`GET ${path}/servers/srv_fleet/calls`]: { body: { items: [] } },
    [`GET ${path}/tools`]: { body: { items: [] } },
    [`GET ${path}/prompts`]: { body: { items: [] } },
    [`GET ${path}/resources`]: { body: { items: [] } },
  });
  open('/w/harbour/servers/srv_fleet?tab=connect');
  const user = userEvent.setup();
  const snippet = () => screen.findByRole('region', { name: 'snippet for Claude' }, patient);
  expect((await snippet()).textContent).toBe(fleet.url);
  await user.click(screen.getByRole('radio', { name: 'Workspace URL' }));
  expect((await snippet()).textContent).toBe(short);
  await user.click(screen.getByRole('radio', { name: 'Server URL' }));
  expect((await snippet()).textContent).toBe(fleet.url);
});
