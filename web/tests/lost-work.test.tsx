// Work that a person did in the console is not lost without a word.
import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import type { Schemas } from '../src/api/http';
import { keptImport } from '../src/import-draft';
import { open } from './page';
import { me, refusal, serve } from './server';

const patient = { timeout: 15_000 };
const base = '/api/v1/workspaces/harbour';

afterEach(() => {
  window.sessionStorage.clear();
  window.localStorage.clear();
});

const prompts = {
  'GET /api/v1/me': { body: me },
  [`GET ${base}/prompts`]: { body: { items: [] } },
};

test('REVIEW-UX-BUG-12: a page with unsaved changes asks before it is left, and keeps them if that is wished', async () => {
  serve(prompts);
  const { router } = open('/w/harbour/prompts/new');
  const user = userEvent.setup();
  const name = await screen.findByRole<HTMLInputElement>('textbox', { name: /^Name/ }, patient);
  await user.type(name, 'port_briefing');
  await user.click(screen.getAllByRole('link', { name: 'Prompts' })[0] as HTMLElement);
  const dialog = await screen.findByRole('dialog', {}, patient);
  expect(within(dialog).getByText('Discard unsaved changes?')).toBeTruthy();
  await user.click(within(dialog).getByRole('button', { name: 'Keep editing' }));
  expect(name.value).toBe('port_briefing');
  expect(router.state.location.pathname).toBe('/w/harbour/prompts/new');
  await user.click(screen.getAllByRole('link', { name: 'Prompts' })[0] as HTMLElement);
  await user.click(await screen.findByRole('button', { name: 'Discard' }, patient));
  await waitFor(() => expect(router.state.location.pathname).toBe('/w/harbour/prompts'));
});

test('REVIEW-UX-BUG-12: a page whose changes were taken back is left at once', async () => {
  serve(prompts);
  const { router } = open('/w/harbour/prompts/new');
  const user = userEvent.setup();
  const name = await screen.findByRole('textbox', { name: /^Name/ }, patient);
  await user.type(name, 'x');
  await user.clear(name);
  await user.click(screen.getAllByRole('link', { name: 'Prompts' })[0] as HTMLElement);
  await waitFor(() => expect(router.state.location.pathname).toBe('/w/harbour/prompts'));
  expect(screen.queryByRole('dialog')).toBeNull();
});

test('REVIEW-UX-BUG-13: when the session ends, what was typed stays and a dialog leads to the sign-in', async () => {
  let signedIn = true;
  serve({
    ...prompts,
    'GET /api/v1/me': () =>
      signedIn ? { body: me } : refusal(401, { code: 'signed_out', message: 'Please sign in.' }),
    [`POST ${base}/prompts`]: () => refusal(401, { code: 'signed_out', message: 'Please sign in.' }),
  });
  const assign = vi.spyOn(window.location, 'assign').mockImplementation(() => {});
  open('/w/harbour/prompts/new');
  const user = userEvent.setup();
  const name = await screen.findByRole<HTMLInputElement>('textbox', { name: /^Name/ }, patient);
  await user.type(name, 'port_briefing');
  await user.type(screen.getByRole('textbox', { name: 'Text of message 1' }), 'Hello');
  signedIn = false;
  await user.click(screen.getByRole('button', { name: 'Create prompt' }));
  const dialog = await screen.findByRole('dialog', {}, patient);
  expect(within(dialog).getByText('You were signed out')).toBeTruthy();
  const link = within(dialog).getByRole('link', { name: 'Sign in again' });
  expect(link.getAttribute('href')).toMatch(/^\/login\?from=%2F/);
  expect(link.getAttribute('target')).toBe('_blank');
  expect(assign).not.toHaveBeenCalled();
  expect(name.value).toBe('port_briefing');
  await user.keyboard('{Escape}');
  expect(screen.queryByRole('dialog')).toBeTruthy();
  // Back from the tab in which they signed in.
  signedIn = true;
  fireEvent.focus(window);
  await waitFor(() => expect(screen.queryByText('You were signed out')).toBeNull(), patient);
  expect(name.value).toBe('port_briefing');
});

const server: Schemas['ServerDetail'] = {
  id: 'srv_1',
  slug: 'harbour',
  name: 'Fleet',
  status: 'published',
  url: 'http://console.test/t/harbour/harbour/mcp',
  tool_count: 0,
  tools: [],
  prompts: [],
  resources: [],
  warnings: [],
  created_at: '2026-01-01T00:00:00Z',
  updated_at: '2026-01-01T00:00:00Z',
};

test('REVIEW-UX-BUG-2: a published server is deleted only when that is confirmed, and a reload keeps the way back', async () => {
  const trash: Schemas['DeletedThing'][] = [];
  const received = serve({
    'GET /api/v1/me': { body: me },
    [`GET ${base}/tools`]: { body: { items: [] } },
    [`GET ${base}/prompts`]: { body: { items: [] } },
    [`GET ${base}/resources`]: { body: { items: [] } },
    [`GET ${base}/servers/srv_1`]: { body: server },
    [`GET ${base}/servers/srv_1/connection`]: { body: { clients: [], url: server.url } },
    [`GET ${base}/servers/srv_1/calls`]: { body: { items: [] } },
    [`GET ${base}/servers`]: { body: { items: [] } },
    [`GET ${base}/trash`]: () => ({ body: { items: [...trash] } }),
    [`DELETE ${base}/servers/srv_1`]: () => {
      const times = { deleted_at: new Date().toISOString(), restorable_until: '2099-01-01T00:00:00Z' };
      trash.push(
        { kind: 'server', id: 'srv_1', name: 'Fleet', ...times },
        { kind: 'prompt', id: 'prm_1', name: 'Other kind', ...times },
        { kind: 'server', id: 'srv_0', name: 'Old', ...times, deleted_at: '2026-01-01T00:00:00Z' },
      );
      return { body: { undo_until: times.restorable_until } };
    },
    [`POST ${base}/servers/srv_1/restore`]: () => {
      trash.length = 0;
      return { body: server };
    },
  });
  const first = open('/w/harbour/servers/srv_1?tab=settings');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'Delete server' }, patient));
  const dialog = await screen.findByRole('dialog', {}, patient);
  expect(dialog.textContent).toContain('connected clients lose access immediately');
  await user.click(within(dialog).getByRole('button', { name: 'Cancel' }));
  expect(received.some((one) => one.method === 'DELETE')).toBe(false);
  await user.click(screen.getByRole('button', { name: 'Delete server' }));
  await user.click(await screen.findByRole('button', { name: 'Delete' }, patient));
  await screen.findByRole('button', { name: 'Restore Fleet' }, patient);
  // Another kind, and what was deleted long ago, are in the trash alone.
  expect(screen.getAllByRole('button', { name: /^Restore/ }).length).toBe(1);
  first.unmount();
  expect(window.localStorage.getItem('portolan-deleted')).toBeNull();

  open('/w/harbour/servers');
  await user.click(await screen.findByRole('button', { name: 'Restore Fleet' }, patient));
  await screen.findByText('“Fleet” was restored.', {}, patient);
  expect(received.some((one) => one.path.endsWith('/srv_1/restore'))).toBe(true);
  await waitFor(() => expect(screen.queryByRole('button', { name: 'Restore Fleet' })).toBeNull(), patient);
  expect(screen.queryByRole('button', { name: 'Restore Fleet' })).toBeNull();
});

const key: Schemas['ApiKey'] = {
  id: 'key_1',
  name: 'CI',
  hint: 'mcpk_AbCd',
  holder: 'usr_1',
  holder_name: 'Ada',
  networks: [],
  created_at: '2026-01-01T00:00:00Z',
  expires_at: '2026-04-01T00:00:00Z',
};

test('REVIEW-UX-BUG-3 and REVIEW-UX-BUG-8: Escape does not take a secret away, and the page behind does not scroll without an injected style', async () => {
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${base}/api-keys`]: { body: { items: [] } },
    [`GET ${base}/service-accounts`]: { body: { items: [] } },
    [`GET ${base}/access-tokens`]: { body: { items: [] } },
    [`GET ${base}/trusted-pipelines`]: { body: { items: [] } },
    [`GET ${base}/servers`]: { body: { items: [] } },
    [`POST ${base}/api-keys`]: { status: 201, body: { key, secret: 'mcpk_secret' } },
  });
  const styles = document.querySelectorAll('style').length;
  open('/w/harbour/keys');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'New API key' }, patient));
  expect(document.querySelector('[data-scroll-lock]')).toBeTruthy();
  expect(document.querySelectorAll('style').length).toBe(styles);
  await user.type(screen.getByLabelText('Name'), 'CI');
  await user.click(screen.getByRole('button', { name: 'Create key' }));
  await screen.findByText('mcpk_secret', {}, patient);
  await user.keyboard('{Escape}');
  expect(screen.getByText('mcpk_secret')).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Done' }));
  await waitFor(() => expect(screen.queryByText('mcpk_secret')).toBeNull());
});

test('REVIEW-UX-BUG-3: Escape while a key is being created does not lose its secret', async () => {
  let created = () => {};
  const answered = new Promise<void>((resolve) => {
    created = resolve;
  });
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${base}/api-keys`]: { body: { items: [] } },
    [`GET ${base}/service-accounts`]: { body: { items: [] } },
    [`GET ${base}/access-tokens`]: { body: { items: [] } },
    [`GET ${base}/trusted-pipelines`]: { body: { items: [] } },
    [`GET ${base}/servers`]: { body: { items: [] } },
    [`POST ${base}/api-keys`]: async () => {
      await answered;
      return { status: 201, body: { key, secret: 'mcpk_secret' } };
    },
  });
  open('/w/harbour/keys');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'New API key' }, patient));
  await user.type(screen.getByLabelText('Name'), 'CI');
  await user.click(screen.getByRole('button', { name: 'Create key' }));
  await user.keyboard('{Escape}');
  created();
  expect(await screen.findByText('mcpk_secret', {}, patient)).toBeTruthy();
});

const operation = (name: string): Schemas['OperationPreview'] => ({
  key: `GET /${name}`,
  method: 'GET',
  path: `/${name}`,
  tool_name: name,
  title: name,
  description: '',
  status: 'tool',
  read_only: true,
  destructive: false,
  deprecated: false,
  tags: [],
  warnings: [],
});
const found: Schemas['ImportPreview'] = {
  title: 'Orders',
  version: '1.0.0',
  spec_version: '3.1.0',
  digest: 'd',
  base_url: 'https://api.example.org',
  servers: [],
  security: [{ kind: 'bearer' }],
  problems: [],
  operations: [operation('list'), operation('find')],
};

test('REVIEW-UX-BUG-11: the steps of an import are in the history, and a reload keeps them without the secret', async () => {
  serve({ 'GET /api/v1/me': { body: me }, [`POST ${base}/imports/preview`]: { body: found } });
  const first = open('/w/harbour/sources/import');
  const user = userEvent.setup();
  await user.type(
    await screen.findByRole('textbox', { name: 'URL of the document' }, patient),
    'https://api.example.org/openapi.json',
  );
  await user.click(screen.getByRole('button', { name: 'Preview tools' }));
  await user.click(await screen.findByRole('checkbox', { name: 'find' }, patient));
  await user.click(screen.getByRole('button', { name: 'Continue with 1 tool' }));
  await user.type(await screen.findByLabelText('Token', {}, patient), 'planted');
  first.router.history.back();
  await screen.findByRole('button', { name: 'Continue with 1 tool' }, patient);
  first.router.history.forward();
  await screen.findByLabelText('Token', {}, patient);
  expect(JSON.stringify(keptImport('harbour'))).not.toContain('planted');
  first.unmount();

  open('/w/harbour/sources/import?step=tools');
  expect(await screen.findByRole('button', { name: 'Continue with 1 tool' }, patient)).toBeTruthy();
  expect(screen.getByRole<HTMLInputElement>('checkbox', { name: 'find' }).checked).toBe(false);
});
