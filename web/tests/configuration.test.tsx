// Configuration as code in the console: the file, the part of it that is one object, and who owns what.
import { screen, waitFor, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test, vi } from 'vitest';
import type { Schemas } from '../src/api/http';
import { NumberedText } from '../src/components/numbered-text';
import { ownersNote } from '../src/components/owned-objects';
import { alone, open } from './page';
import { me, refusal, serve } from './server';

vi.setConfig({ testTimeout: 40_000 });
const patient = { timeout: 20_000 };
const path = '/api/v1/workspaces/harbour';
const file = 'format: portolan/v1\nname: acme-prod\nservers:\n  - slug: fleet\n    status: published\n';
const part = 'servers:\n  - slug: fleet\n    status: published\n';

const at = '2026-01-01T00:00:00Z';
const server: Schemas['Server'] = {
  id: 'srv_1',
  slug: 'fleet',
  name: 'Fleet',
  status: 'published',
  url: 'https://example.org/t/harbour/fleet/mcp',
  tool_count: 0,
  managed_by: 'acme-prod',
  created_at: at,
  updated_at: at,
};
const detail = { ...server, tools: [], prompts: [], resources: [], warnings: [] };
const source: Schemas['Source'] = {
  id: 'src_1',
  name: 'Ports',
  kind: 'http',
  base_url: 'https://ports.example',
  settings: { timeout_ms: 1000, max_response_bytes: 2048, follow_redirects: 'none', tasks: false },
  tool_count: 0,
  enabled_tool_count: 0,
  credential: null,
  security: [],
  created_at: at,
  updated_at: at,
};

const as = (role: Schemas['Role']) => ({
  ...me,
  workspaces: me.workspaces.map((one) => ({ ...one, role })),
});

const harbour = (role: Schemas['Role'] = 'developer') => ({
  'GET /api/v1/me': { body: as(role) },
  [`GET ${path}/configuration`]: ({ search }: { search: string }) => ({
    text: search.includes('kind=') ? part : file,
  }),
  [`GET ${path}/sources`]: { body: { items: [source] } },
  [`GET ${path}/prompts`]: { body: { items: [] } },
  [`GET ${path}/resources`]: { body: { items: [] } },
  [`GET ${path}/servers`]: { body: { items: [server] } },
  [`GET ${path}/servers/srv_1`]: { body: detail },
  [`GET ${path}/servers/srv_1/capture`]: { body: { mode: 'none', days: 7 } },
  [`GET ${path}/sources/src_1`]: { body: source },
  [`GET ${path}/sources/src_1/tools`]: { body: { items: [] } },
  [`GET ${path}/tools`]: { body: { items: [] } },
});

test('the page shows the file with its lines, copies and saves it, and lists what a file owns', async () => {
  const received = serve(harbour());
  const user = userEvent.setup();
  const saved: Blob[] = [];
  const address = vi.spyOn(URL, 'createObjectURL').mockImplementation((blob) => {
    saved.push(blob as Blob);
    return 'blob:saved';
  });
  const clicked = vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(() => undefined);
  open('/w/harbour/configuration');
  const text = await screen.findByRole('region', { name: 'The workspace as YAML' }, patient);
  expect(text.querySelector('code')?.textContent).toBe(file.trimEnd());
  expect(text.querySelector('pre')?.textContent).toBe('1\n2\n3\n4\n5');
  expect(received.find((one) => one.path.endsWith('/configuration'))?.search).toBe('?format=yaml');
  await user.click(screen.getByRole('button', { name: 'Copy the file' }));
  await waitFor(async () => expect(await navigator.clipboard.readText()).toBe(file));
  await user.click(screen.getByRole('button', { name: 'Download' }));
  expect(clicked.mock.contexts.map((one) => (one as HTMLAnchorElement).download)).toEqual(['portolan.yaml']);
  expect(await saved[0]?.text()).toBe(file);
  address.mockRestore();
  clicked.mockRestore();

  const owned = within(await screen.findByRole('table', { name: 'Objects that files own' }, patient));
  expect(owned.getByRole('link', { name: 'Fleet' }).getAttribute('href')).toBe('/w/harbour/servers/srv_1');
  expect(owned.getAllByRole('row').length).toBe(2);
  expect(screen.getByText('acme-prod owns 1 object.')).toBeTruthy();
  expect(screen.getByText(/^export PORTOLAN_URL=/).textContent).toContain('PORTOLAN_WORKSPACE=harbour');
});

test('a workspace without a file says so, and a refused export has its reason', async () => {
  serve({
    ...harbour(),
    [`GET ${path}/servers`]: { body: { items: [] } },
    [`GET ${path}/configuration`]: refusal(409, {
      code: 'names_not_unique',
      message: 'Two sources are called `Ports`.',
    }),
  });
  open('/w/harbour/configuration');
  expect(await screen.findByText(/No file owns an object of this workspace/, {}, patient)).toBeTruthy();
  expect(await screen.findByText('Two sources are called `Ports`.', {}, patient)).toBeTruthy();
  expect(screen.queryByRole('button', { name: 'Download' })).toBeNull();
});

test('a member reads which roles see the file, and the page does not ask for it', async () => {
  const received = serve(harbour('member'));
  open('/w/harbour/configuration');
  expect(await screen.findByText(/Your role in this workspace is member/, {}, patient)).toBeTruthy();
  expect(received.some((one) => one.path.endsWith('/configuration'))).toBe(false);
  expect(screen.queryByRole('link', { name: 'Configuration' })).toBeNull();
});

test('an owned server has its badge, and its part of the file opens and closes', async () => {
  const received = serve(harbour());
  const user = userEvent.setup();
  open('/w/harbour/servers/srv_1?tab=settings');
  const badge = await screen.findByRole('link', { name: 'Managed by acme-prod' }, patient);
  expect(badge.getAttribute('href')).toBe('/w/harbour/configuration');
  await user.hover(badge);
  expect(await screen.findByText(/next portolan apply of the file acme-prod overwrites/)).toBeTruthy();
  expect(received.some((one) => one.path.endsWith('/configuration'))).toBe(false);
  await user.click(screen.getByRole('button', { name: 'Show as YAML' }));
  const dialog = within(await screen.findByRole('dialog', { name: 'fleet as YAML' }, patient));
  const text = await dialog.findByRole('region', { name: 'This server as YAML' }, patient);
  expect(text.querySelector('code')?.textContent).toBe(part.trimEnd());
  const asked = received.find((one) => one.path.endsWith('/configuration'))?.search;
  expect(Object.fromEntries(new URLSearchParams(asked))).toEqual({
    format: 'yaml',
    kind: 'server',
    key: 'fleet',
  });
  await user.click(dialog.getByRole('button', { name: 'Close' }));
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
});

test('a viewer sees the badge, which leads to the docs, and no YAML', async () => {
  serve(harbour('viewer'));
  open('/w/harbour/servers/srv_1?tab=settings');
  const badge = await screen.findByRole('link', { name: 'Managed by acme-prod' }, patient);
  expect(badge.getAttribute('href')).toBe('/docs/configuration-as-code#in-the-console');
  expect(screen.queryByRole('button', { name: 'Show as YAML' })).toBeNull();
});

test('a source that no file owns has no badge, and is shown as YAML', async () => {
  serve(harbour());
  open('/w/harbour/sources/src_1?tab=settings');
  expect(await screen.findByRole('button', { name: 'Show as YAML' }, patient)).toBeTruthy();
  expect(screen.queryByText(/^Managed by/)).toBeNull();
});

test('a long text begins with its first lines and is shown whole on request', async () => {
  const lines = Array.from({ length: 2500 }, (_, line) => `line ${line + 1}`);
  alone(<NumberedText text={`${lines.join('\n')}\n`} label="Long" />);
  const text = await screen.findByRole('region', { name: 'Long' });
  expect(text.querySelector('code')?.textContent?.endsWith('line 2000')).toBe(true);
  await userEvent.setup().click(screen.getByRole('button', { name: 'Show all 2,500 lines' }));
  expect(text.querySelector('code')?.textContent?.endsWith('line 2500')).toBe(true);
  expect(text.querySelector('pre')?.textContent?.endsWith('2500')).toBe(true);
  expect(screen.queryByRole('button')).toBeNull();
});

test('the note counts the objects of each file', () => {
  const one = { kind: 'server', id: '1', name: 'x' } as const;
  expect(
    ownersNote([
      { ...one, owner: 'web' },
      { ...one, owner: 'acme' },
      { ...one, owner: 'web' },
    ]),
  ).toBe('acme owns 1 object and web owns 2 objects.');
});
