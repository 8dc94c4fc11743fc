import { notifications } from '@mantine/notifications';
import { screen, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import type { Schemas } from '../src/api/http';
import { fill, placeholders, templateVariables } from '../src/placeholders';
import { open } from './page';
import { me, refusal, serve } from './server';

vi.setConfig({ testTimeout: 30_000 });

afterEach(() => notifications.clean());

// The pages are loaded when they are needed, which takes its time on a busy machine.
const patience = { timeout: 15_000 };
const path = '/api/v1/workspaces/harbour';
const prompt: Schemas['Prompt'] = {
  id: 'prm_1',
  name: 'review',
  title: 'Review',
  description: '',
  arguments: [{ name: 'code', required: true, values: [{ value: 'a', when: { lang: 'go' } }] }],
  messages: [{ role: 'user', content: { type: 'text', text: 'Look at {{code}}.' } }],
  enabled: true,
  state: 'active',
  used_by_servers: ['fleet'],
  updated_at: '2026-01-01T00:00:00Z',
};
const resource: Schemas['Resource'] = {
  id: 'rsc_1',
  shape: 'template',
  uri: 'pets://{id}',
  name: 'pet',
  title: '',
  description: '',
  variables: [{ name: 'id', required: true, values: [] }],
  body: 'text',
  text: 'Pet {{id}}',
  enabled: true,
  state: 'active',
  used_by_servers: [],
  updated_at: '2026-01-01T00:00:00Z',
};

test('MCP-PR-7: placeholders are filled once, escaped ones stay, and what is no name is text', () => {
  expect(fill('{{a}} {{ b }} \\{{a}} {{a b}} {{constructor}}', { a: '{{b}}', b: '1' })).toBe(
    '{{b}} 1 {{a}} {{a b}} ',
  );
  expect(placeholders('{{a}}{{a}} \\{{b}} {{c}}')).toEqual(['a', 'c']);
  expect(templateVariables('x://{a}/{+b}{#c}')).toEqual(['a', 'b', 'c']);
});

test('without any prompt there is a way to write one, for those who may', async () => {
  serve({ 'GET /api/v1/me': { body: me }, [`GET ${path}/prompts`]: { body: { items: [] } } });
  open('/w/harbour/prompts');
  expect(await screen.findByRole('heading', { name: 'No prompts yet' }, patience)).toBeTruthy();
  expect(screen.getByRole('link', { name: 'New prompt' })).toBeTruthy();
});

test('a viewer sees prompts and cannot switch them', async () => {
  const viewer = { ...me, workspaces: me.workspaces.map((one) => ({ ...one, role: 'viewer' as const })) };
  serve({ 'GET /api/v1/me': { body: viewer }, [`GET ${path}/prompts`]: { body: { items: [prompt] } } });
  open('/w/harbour/prompts');
  const enabled = await screen.findByRole<HTMLInputElement>('switch', { name: 'Enabled: review' }, patience);
  expect(enabled.disabled).toBe(true);
  expect(screen.queryByRole('link', { name: 'New prompt' })).toBeNull();
});

test('a resource that an HTTP source answers is edited here', async () => {
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}/sources`]: { body: { items: [] } },
    [`GET ${path}/resources/rsc_1`]: {
      body: { ...resource, body: 'http', text: undefined, source_name: 'Pets', http_path: '/pets/{id}' },
    },
  });
  open('/w/harbour/resources/rsc_1');
  expect(await screen.findByRole('button', { name: 'Save resource' }, patience)).toBeTruthy();
  expect(screen.queryByText(/comes from an upstream server/)).toBeNull();
});

test('what may not be seen and what cannot be loaded are said', async () => {
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}/resources`]: refusal(403, { code: 'forbidden', message: 'Ask an owner.' }),
  });
  open('/w/harbour/resources');
  expect(await screen.findByRole('heading', { name: 'You don’t have access' }, patience)).toBeTruthy();
});

test('an argument that a message uses is added with one click, the preview shows it, and the whole is sent', async () => {
  const user = userEvent.setup();
  const received = serve({
    'GET /api/v1/me': { body: me },
    [`POST ${path}/prompts`]: { status: 201, body: prompt },
    [`GET ${path}/prompts`]: { body: { items: [prompt] } },
  });
  open('/w/harbour/prompts/new');
  await user.type(await screen.findByRole('textbox', { name: /^Name/ }, patience), 'review');
  await user.click(screen.getByRole('textbox', { name: 'Text of message 1' }));
  await user.paste('Look at {{code}}.');
  await user.click(screen.getByRole('button', { name: 'Create prompt' }));
  expect(screen.getByText(/is not an argument/)).toBeTruthy();
  expect(received.some((one) => one.method === 'POST')).toBe(false);
  await user.click(screen.getByRole('button', { name: 'Add argument “code”' }));
  await user.type(screen.getByRole('textbox', { name: /^Suggested values/ }), 'main{Enter}test | lang=go');
  await user.type(screen.getByRole('textbox', { name: 'Value of code' }), 'main()');
  const preview = screen.getByRole('list', { name: 'Rendered messages' });
  expect(within(preview).getByText('Look at main().')).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Create prompt' }));
  expect(await screen.findByText('Prompt created.')).toBeTruthy();
  expect(received.find((one) => one.method === 'POST')?.body).toEqual({
    name: 'review',
    title: '',
    description: '',
    arguments: [
      { name: 'code', required: true, values: [{ value: 'main' }, { value: 'test', when: { lang: 'go' } }] },
    ],
    messages: [{ role: 'user', content: { type: 'text', text: 'Look at {{code}}.' } }],
  });
});

test('a name that is taken is said at its field, and a deletion can be undone', async () => {
  const user = userEvent.setup();
  const trash: Schemas['DeletedThing'][] = [];
  const received = serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}/prompts/prm_1`]: { body: prompt },
    [`GET ${path}/prompts`]: { body: { items: [] } },
    [`GET ${path}/trash`]: () => ({ body: { items: [...trash] } }),
    [`PUT ${path}/prompts/prm_1`]: refusal(409, {
      code: 'name_taken',
      message: 'This workspace has a prompt called `review` already.',
      field: 'name',
    }),
    [`DELETE ${path}/prompts/prm_1`]: () => {
      const deleted_at = new Date().toISOString();
      const restorable_until = '2099-01-01T00:00:00Z';
      trash.push({ kind: 'prompt', id: 'prm_1', name: 'review', deleted_at, restorable_until });
      return { body: { undo_until: restorable_until } };
    },
    [`POST ${path}/prompts/prm_1/restore`]: { body: prompt },
  });
  open('/w/harbour/prompts/prm_1');
  await user.click(await screen.findByRole('button', { name: 'Save prompt' }, patience));
  const [name] = screen.getAllByRole('textbox', { name: 'Name' });
  await screen.findByRole('alert');
  expect(name?.getAttribute('aria-invalid')).toBe('true');
  expect(received.find((one) => one.method === 'PUT')?.body).toMatchObject({ arguments: prompt.arguments });
  await user.click(screen.getByRole('button', { name: 'Delete prompt' }));
  await user.click(await screen.findByRole('button', { name: 'Delete' }));
  await user.click(await screen.findByRole('button', { name: 'Restore review' }, patience));
  expect(await screen.findByText('“review” was restored.')).toBeTruthy();
});

test('the variables of a template follow its URI, and an unknown placeholder is refused', async () => {
  const user = userEvent.setup();
  const received = serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}/sources`]: { body: { items: [] } },
    [`GET ${path}/resources/rsc_1`]: { body: resource },
    [`PUT ${path}/resources/rsc_1`]: { body: resource },
  });
  open('/w/harbour/resources/rsc_1');
  const text = await screen.findByRole('textbox', { name: 'Text' }, patience);
  await user.clear(text);
  await user.click(text);
  await user.paste('Pet {{name}}');
  await user.click(screen.getByRole('button', { name: 'Save resource' }));
  expect(screen.getByText('{{name}} is not a variable of the template.')).toBeTruthy();
  const uri = screen.getByRole('textbox', { name: 'URI' });
  await user.clear(uri);
  await user.click(uri);
  await user.paste('pets://{name}');
  await user.click(screen.getByRole('button', { name: 'Save resource' }));
  expect(await screen.findByText(/Resource saved/)).toBeTruthy();
  expect(received.find((one) => one.method === 'PUT')?.body).toMatchObject({
    uri: 'pets://{name}',
    variables: [{ name: 'name' }],
    holds: { kind: 'text', text: 'Pet {{name}}' },
  });
});

test('a server chooses its prompts and the names under which clients see them', async () => {
  const user = userEvent.setup();
  const server = {
    id: 'srv_1',
    slug: 'fleet',
    name: 'Fleet',
    status: 'draft',
    url: 'https://example.org/t/harbour/fleet/mcp',
    tool_count: 0,
    created_at: '2026-01-01T00:00:00Z',
    updated_at: '2026-01-01T00:00:00Z',
    tools: [],
    prompts: [],
    resources: [],
    warnings: [],
  };
  const received = serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}/servers/srv_1`]: { body: server },
    [`GET ${path}/tools`]: { body: { items: [] } },
    [`GET ${path}/prompts`]: { body: { items: [prompt] } },
    [`PUT ${path}/servers/srv_1/prompts`]: { body: server },
  });
  open('/w/harbour/servers/srv_1?tab=prompts');
  await user.click(await screen.findByRole('checkbox', { name: 'review' }, patience));
  const name = screen.getByRole('textbox', { name: 'Published name of review' });
  await user.clear(name);
  await user.type(name, 'inspect');
  await user.click(screen.getByRole('button', { name: 'Save prompts' }));
  expect(await screen.findByText(/Prompts saved/)).toBeTruthy();
  expect(received.find((one) => one.method === 'PUT')?.body).toEqual({
    prompts: [{ prompt_id: 'prm_1', published_name: 'inspect' }],
  });
});
