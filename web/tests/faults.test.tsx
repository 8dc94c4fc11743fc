// The error of a form stands beside the pressed button, and a form that cannot be sent is not
// offered.
import { screen, waitFor, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, refusal, serve } from './server';

const patient = { timeout: 15_000 };
const base = '/api/v1/workspaces/harbour';
const as = (role: Schemas['Role']): Schemas['Me'] => ({
  ...me,
  workspaces: me.workspaces.map((one) => ({ ...one, role })),
});

test('REVIEW-UX-BUG-6: a refusal stands beside the button, and the field that it names has the focus', async () => {
  serve({
    'GET /api/v1/me': { body: me },
    [`POST ${base}/prompts`]: refusal(409, {
      code: 'name_taken',
      message: 'This workspace has a prompt called `greet` already.',
      field: 'name',
    }),
  });
  open('/w/harbour/prompts/new');
  const user = userEvent.setup();
  const name = await screen.findByRole('textbox', { name: /^Name/ }, patient);
  await user.type(name, 'greet');
  await user.type(screen.getByRole('textbox', { name: 'Text of message 1' }), 'Hello');
  const send = screen.getByRole('button', { name: 'Create prompt' });
  await user.click(send);
  const alert = await screen.findByRole('alert', {}, patient);
  expect(alert.closest('form')?.lastElementChild?.contains(alert)).toBe(true);
  expect(alert.parentElement?.contains(send)).toBe(true);
  await waitFor(() => expect(document.activeElement).toBe(name));
});

const tool: Schemas['ToolSummary'] = {
  id: 'tol_1',
  name: 'list_orders',
  title: 'Orders',
  description: '',
  method: 'GET',
  path: '/orders',
  source_id: 'src_1',
  source_name: 'Shop',
  enabled: true,
  state: 'active',
  customised: false,
  annotations: { destructiveHint: false, idempotentHint: false, openWorldHint: false, readOnlyHint: true },
  used_by_servers: ['public'],
};
const prompt: Schemas['PromptSummary'] = {
  id: 'prm_1',
  name: 'greet',
  title: 'Greeting',
  description: '',
  arguments: [],
  enabled: true,
  state: 'active',
  used_by_servers: [],
  updated_at: '2026-01-01T00:00:00Z',
};
const made = { id: 'srv_1', status: 'draft' };

test('REVIEW-UX-BUG-7: a server without anything says so beside the button, and a server of prompts only is published', async () => {
  const received = serve({
    'GET /api/v1/me': { body: me },
    [`GET ${base}/tools`]: { body: { items: [tool] } },
    [`GET ${base}/prompts`]: { body: { items: [prompt] } },
    [`POST ${base}/servers`]: { status: 201, body: made },
    [`PUT ${base}/servers/srv_1/prompts`]: { body: made },
    [`POST ${base}/servers/srv_1/publish`]: { body: made },
    [`GET ${base}/servers/srv_1`]: refusal(404, { code: 'not_found', message: 'Gone.' }),
  });
  open('/w/harbour/servers/new');
  const user = userEvent.setup();
  await user.type(await screen.findByRole('textbox', { name: /^Name/ }, patient), 'Greeter');
  const send = screen.getByRole('button', { name: 'Create and publish' });
  await user.click(send);
  const alert = await screen.findByText('Select at least one tool or prompt to publish, or save a draft.');
  expect(alert.parentElement?.contains(send)).toBe(true);
  expect(received.some((one) => one.method === 'POST')).toBe(false);
  await user.click(screen.getByRole('checkbox', { name: 'greet' }));
  await user.click(send);
  await waitFor(() => expect(received.some((one) => one.path.endsWith('/publish'))).toBe(true), patient);
  expect(received.find((one) => one.path.endsWith('/prompts') && one.method === 'PUT')?.body).toEqual({
    prompts: [{ prompt_id: 'prm_1', published_name: 'greet' }],
  });
});

const preview = (more: Partial<Schemas['ImportPreview']>): Schemas['ImportPreview'] => ({
  title: 'Orders',
  version: '1.0.0',
  spec_version: '3.1.0',
  digest: 'd',
  base_url: 'https://api.example.org',
  servers: [],
  security: [],
  problems: [],
  operations: [],
  ...more,
});

async function importing(found: Schemas['ImportPreview']) {
  serve({ 'GET /api/v1/me': { body: me }, [`POST ${base}/imports/preview`]: { body: found } });
  open('/w/harbour/sources/import');
  const user = userEvent.setup();
  await user.type(
    await screen.findByRole('textbox', { name: 'URL of the document' }, patient),
    'https://api.example.org/openapi.json',
  );
  await user.click(screen.getByRole('button', { name: 'Preview tools' }));
  await screen.findByRole('textbox', { name: 'Source name' }, patient);
  return user;
}

test('a refusal about the tools of a new server stands beside the button, and the choice stays', async () => {
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${base}/tools`]: { body: { items: [tool] } },
    [`GET ${base}/prompts`]: { body: { items: [prompt] } },
    [`POST ${base}/servers`]: refusal(422, {
      code: 'tool_unknown',
      message: 'A tool of the choice was deleted.',
      field: 'tools',
    }),
  });
  open('/w/harbour/servers/new');
  const user = userEvent.setup();
  const name = await screen.findByRole<HTMLInputElement>('textbox', { name: /^Name/ }, patient);
  await user.type(name, 'Greeter');
  await user.click(screen.getByRole('checkbox', { name: 'greet' }));
  await user.click(screen.getByRole('button', { name: 'Create and publish' }));
  expect(await screen.findByText('A tool of the choice was deleted.')).toBeTruthy();
  expect(name.value).toBe('Greeter');
  expect(screen.getByRole('textbox', { name: 'Published name of greet' })).toBeTruthy();
});

test('REVIEW-UX-BUG-18: a document without operations says so and goes no further', async () => {
  await importing(preview({}));
  expect(screen.getByText('This document has no operations.')).toBeTruthy();
  expect(screen.queryByText('Every operation became a tool.')).toBeNull();
  expect(screen.getByRole('button', { name: /^Continue/ })).toHaveProperty('disabled', true);
});

test('REVIEW-UX-BUG-10 and REVIEW-UX-BUG-19: a title that is too long is said where the name is, and what was changed stands in the notes', async () => {
  const user = await importing(
    preview({
      title: 'T'.repeat(90),
      operations: [
        {
          key: 'GET /orders',
          method: 'GET',
          path: '/orders',
          tool_name: 'orders_x1',
          title: '',
          description: '',
          status: 'tool',
          read_only: true,
          destructive: false,
          deprecated: false,
          tags: [],
          warnings: ['the name `customers.export` was changed'],
        },
      ],
    }),
  );
  expect(screen.getByText('Use up to 80 characters.')).toBeTruthy();
  const name = screen.getByRole<HTMLInputElement>('textbox', { name: 'Source name' });
  await user.click(screen.getByRole('button', { name: 'Continue with 1 tool' }));
  expect(document.activeElement).toBe(name);
  await user.click(screen.getByRole('tab', { name: 'Notes 1' }));
  expect(screen.getByText('customers.export').tagName).toBe('CODE');
});

test.each([
  ['/servers/new', 'New server'],
  ['/sources/import', 'Import an API'],
  ['/sources/new', 'Add an API manually'],
  ['/prompts/new', 'New prompt'],
  ['/resources/new', 'New resource'],
  ['/clients', 'AI clients'],
])('REVIEW-UX-BUG-17: a member who opens %s sees one refusal and no form', async (path, title) => {
  serve({ 'GET /api/v1/me': { body: as('member') } });
  open(`/w/harbour${path}`);
  await screen.findByRole('heading', { name: title, level: 1 }, patient);
  expect(screen.getAllByText('You don’t have access').length).toBe(1);
  expect(document.querySelector('main form')).toBeNull();
  expect(screen.queryByRole('button', { name: 'Register a client' })).toBeNull();
});

test('REVIEW-UX-BUG-16: disabling tools names the servers that lose them, and is not done before that is confirmed', async () => {
  const received = serve({
    'GET /api/v1/me': { body: me },
    [`GET ${base}/tools`]: { body: { items: [tool] } },
    [`POST ${base}/tools/enabled`]: { body: { ids: ['tol_1'] } },
  });
  open('/w/harbour/tools');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('checkbox', { name: 'Select list_orders' }, patient));
  await user.click(screen.getByRole('button', { name: 'Disable' }));
  const dialog = await screen.findByRole('dialog', {}, patient);
  expect(dialog.textContent).toContain('The server public stops offering it immediately.');
  expect(received.some((one) => one.method === 'POST')).toBe(false);
  await user.click(within(dialog).getByRole('button', { name: 'Disable' }));
  await waitFor(() =>
    expect(received.find((one) => one.method === 'POST')?.body).toEqual({ ids: ['tol_1'], enabled: false }),
  );
});

test('REVIEW-UX-BUG-16: a server counts what it serves, shows the selected tools first, and marks those that are disabled', async () => {
  const chosen = (id: string, enabled: boolean): Schemas['ServerTool'] => ({
    tool_id: id,
    published_name: id,
    title: '',
    method: 'GET',
    path: `/${id}`,
    source_name: 'Shop',
    enabled,
    state: 'active',
  });
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${base}/tools`]: {
      body: {
        items: [
          { ...tool, id: 'other', name: 'other' },
          { ...tool, id: 'on', name: 'on' },
          { ...tool, id: 'off', name: 'off', enabled: false },
        ],
      },
    },
    [`GET ${base}/prompts`]: { body: { items: [] } },
    [`GET ${base}/resources`]: { body: { items: [] } },
    [`GET ${base}/servers/srv_1/connection`]: { body: { clients: [], url: 'http://x' } },
    [`GET ${base}/servers/srv_1/calls`]: { body: { items: [] } },
    [`GET ${base}/servers/srv_1`]: {
      body: {
        id: 'srv_1',
        slug: 'shop',
        name: 'Shop',
        status: 'published',
        url: 'http://x',
        tool_count: 1,
        tools: [chosen('on', true), chosen('off', false)],
        prompts: [],
        resources: [],
        warnings: [],
        created_at: '2026-01-01T00:00:00Z',
        updated_at: '2026-01-01T00:00:00Z',
      },
    },
  });
  open('/w/harbour/servers/srv_1');
  const user = userEvent.setup();
  await screen.findByRole('tab', { name: 'Tools 1' }, patient);
  await screen.findByRole('checkbox', { name: 'on' }, patient);
  expect(screen.getByText('disabled, not served')).toBeTruthy();
  const only = screen.getByRole<HTMLInputElement>('checkbox', { name: 'Selected only' });
  expect(only.checked).toBe(true);
  expect(screen.queryByRole('checkbox', { name: 'other' })).toBeNull();
  await user.click(only);
  const names = screen.getAllByRole('checkbox').map((one) => one.getAttribute('aria-label'));
  expect(names.slice(-3)).toEqual(['on', 'off', 'other']);
});
