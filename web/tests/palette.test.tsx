import { screen, waitFor, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import type { Schemas } from '../src/api/http';
import { overlayOf, setSingleKeys } from '../src/shortcuts';
import { open } from './page';
import { me, refusal, serve } from './server';

vi.setConfig({ testTimeout: 30_000 });
const patient = { timeout: 20_000 };
const path = '/api/v1/workspaces/harbour';

afterEach(() => window.localStorage.clear());

const results: Schemas['SearchResult'][] = [
  { kind: 'server', id: 'srv_1', name: 'Quay desk', detail: 'quay' },
  { kind: 'tool', id: 'tol_1', name: 'list_quays', detail: 'Lists quays · GET /quays · Harbour' },
  { kind: 'credential', id: 'src_1', name: 'Credential of Quay', detail: 'bearer' },
];

const workspace = (role: Schemas['Role']) => ({
  'GET /api/v1/me': { body: { ...me, workspaces: me.workspaces.map((one) => ({ ...one, role })) } },
  [`GET ${path}/trash`]: { body: { items: [] } },
});

test('Ctrl-K finds pages, things and docs, and Enter opens the selected one', async () => {
  const received = serve({ ...workspace('owner'), [`GET ${path}/search`]: { body: { items: results } } });
  const user = userEvent.setup();
  const { router } = open('/w/harbour/trash');
  await screen.findByRole('heading', { name: 'Trash' }, patient);
  await user.keyboard('{Control>}k{/Control}');
  const field = await screen.findByRole('textbox', { name: /^Search pages/ }, patient);
  const palette = within(screen.getByRole('dialog', { name: 'Search' }));
  palette.getByRole('option', { name: 'Audit log' });
  await user.type(field, 'quay');
  await palette.findByRole('option', { name: /^Quay desk/ }, patient);
  palette.getByRole('option', { name: /Credential of Quay/ });
  expect(received.filter((one) => one.path.endsWith('/search')).length).toBeLessThan(4);
  await user.keyboard('{ArrowDown}{Enter}');
  await waitFor(() => expect(router.state.location.href).toBe('/w/harbour/sources/src_1?tab=credential'));
  expect(screen.queryByRole('dialog')).toBeNull();
});

test('a viewer is offered no page and no form that the role refuses', async () => {
  serve({ ...workspace('viewer'), [`GET ${path}/search`]: { body: { items: [] } } });
  const user = userEvent.setup();
  open('/w/harbour/trash');
  await screen.findByRole('heading', { name: 'Trash' }, patient);
  await user.keyboard('/');
  const field = await screen.findByRole('textbox', { name: /^Search pages/ }, patient);
  expect(screen.queryByRole('option', { name: 'Audit log' })).toBeNull();
  await user.type(field, 'new server');
  await screen.findByText('No results.', undefined, patient);
});

test('a search that fails says so, and the pages are still offered', async () => {
  serve({
    ...workspace('owner'),
    [`GET ${path}/search`]: refusal(500, { code: 'internal', message: 'It broke.' }),
  });
  const user = userEvent.setup();
  open('/w/harbour/trash');
  await screen.findByRole('heading', { name: 'Trash' }, patient);
  await user.keyboard('/');
  await user.type(await screen.findByRole('textbox', { name: /^Search pages/ }, patient), 'limits');
  await screen.findByText('The search failed: It broke.', undefined, patient);
  screen.getByRole('option', { name: 'Limits' });
});

test('the help shows the keys, and turns single keys off', async () => {
  serve(workspace('owner'));
  const user = userEvent.setup();
  open('/w/harbour/trash');
  await screen.findByRole('heading', { name: 'Trash' }, patient);
  await user.keyboard('?');
  await user.click(await screen.findByRole('switch', { name: /single key/ }, patient));
  await user.keyboard('{Escape}');
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  const key = (init: KeyboardEventInit) => overlayOf(new KeyboardEvent('keydown', init));
  expect(key({ key: '/' })).toBeUndefined();
  expect(key({ key: 'k', metaKey: true })).toBe('search');
  setSingleKeys(true);
  expect(key({ key: '/' })).toBe('search');
  expect(key({ key: '/', ctrlKey: true })).toBeUndefined();
});

test('a field keeps the keys that are typed into it', () => {
  const field = document.createElement('input');
  document.body.append(field);
  const seen: unknown[] = [];
  field.addEventListener('keydown', (event) => seen.push(overlayOf(event)));
  for (const init of [{ key: '/' }, { key: '?' }, { key: 'k', ctrlKey: true }]) {
    field.dispatchEvent(new KeyboardEvent('keydown', init));
  }
  field.remove();
  expect(seen).toEqual([undefined, undefined, 'search']);
});
