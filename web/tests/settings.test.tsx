import { notifications } from '@mantine/notifications';
import { screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, refusal, serve } from './server';

// Messages outlive the page that showed them.
afterEach(() => notifications.clean());

const base = '/api/v1/workspaces/harbour';
const patient = { timeout: 20_000 };
const workspace = (role: Schemas['Role']): Schemas['Workspace'] => ({
  id: 'ten_1',
  slug: 'harbour',
  name: 'Harbour',
  role,
  created_at: '2026-01-01T00:00:00Z',
  http_sse: true,
  workspace_tokens: true,
});
const as = (role: Schemas['Role']) => ({
  'GET /api/v1/me': { body: { ...me, workspaces: me.workspaces.map((one) => ({ ...one, role })) } },
  [`GET ${base}`]: { body: workspace(role) },
});

test('an owner deletes the workspace by typing its address, AUTH-M6', async () => {
  const received = serve({
    ...as('owner'),
    [`DELETE ${base}`]: { body: { delete_after: '2026-02-01T00:00:00Z' } },
  });
  open('/w/harbour/settings');
  const user = userEvent.setup();
  const button = await screen.findByRole('button', { name: 'Delete workspace' }, patient);
  expect(button).toHaveProperty('disabled', true);
  await user.type(screen.getByLabelText('Type harbour to delete it'), 'harbour');
  await user.click(button);
  expect(await screen.findByText(/It can be restored until/, {}, patient)).toBeTruthy();
  expect(received.find((one) => one.method === 'DELETE')?.body).toEqual({ slug: 'harbour' });
});

test('who signed in long ago is led to the page that asks again, AUTH-S2', async () => {
  serve({
    ...as('owner'),
    [`DELETE ${base}`]: refusal(403, {
      code: 'confirm_first',
      message: 'Confirm that it is you.',
      details: { path: '/account/confirm?request=w.settings.harbour' },
    }),
  });
  open('/w/harbour/settings');
  const user = userEvent.setup();
  await user.type(await screen.findByLabelText('Type harbour to delete it', {}, patient), 'harbour');
  await user.click(screen.getByRole('button', { name: 'Delete workspace' }));
  const link = await screen.findByRole('link', { name: 'Verify' }, patient);
  expect(link.getAttribute('href')).toBe('/account/confirm?request=w.settings.harbour');
});

test('an admin turns HTTP+SSE off, and who may not is told so, MCP-DP-6', async () => {
  const received = serve({
    ...as('admin'),
    [`PATCH ${base}`]: { body: { ...workspace('admin'), http_sse: false } },
  });
  open('/w/harbour/settings');
  const user = userEvent.setup();
  const toggle = await screen.findByRole(
    'switch',
    { name: /^Allow the legacy HTTP\+SSE transport/ },
    patient,
  );
  expect(toggle).toHaveProperty('checked', true);
  await user.click(toggle);
  expect(await screen.findByText('HTTP+SSE is turned off.', {}, patient)).toBeTruthy();
  expect(received.find((one) => one.method === 'PATCH')?.body).toEqual({ http_sse: false });
});

test('an admin lets a token open one server only, AUTH-5.4', async () => {
  let now = workspace('admin');
  const received = serve({
    ...as('admin'),
    [`GET ${base}`]: () => ({ body: now }),
    [`PATCH ${base}`]: () => {
      now = { ...now, workspace_tokens: false };
      return { body: now };
    },
  });
  open('/w/harbour/settings');
  const user = userEvent.setup();
  const name = /^Allow workspace-wide tokens/;
  const toggle = await screen.findByRole<HTMLInputElement>('switch', { name }, patient);
  expect(toggle.checked).toBe(true);
  await user.click(toggle);
  expect(await screen.findByText('Workspace-wide tokens are turned off.', {}, patient)).toBeTruthy();
  await waitFor(() => expect(screen.getByRole<HTMLInputElement>('switch', { name }).checked).toBe(false));
  expect(screen.getByRole('switch', { name: /^Allow the legacy HTTP\+SSE transport/ })).toHaveProperty(
    'checked',
    true,
  );
  expect(received.find((one) => one.method === 'PATCH')?.body).toEqual({ workspace_tokens: false });
});

test('a viewer sees the switches and cannot turn them, MCP-DP-6', async () => {
  serve(as('viewer'));
  open('/w/harbour/settings');
  const toggle = await screen.findByRole(
    'switch',
    { name: /^Allow the legacy HTTP\+SSE transport/ },
    patient,
  );
  expect(toggle).toHaveProperty('disabled', true);
  expect(screen.getByRole('switch', { name: /^Allow workspace-wide tokens/ })).toHaveProperty(
    'disabled',
    true,
  );
  expect(screen.getByText('An admin or owner can change this.')).toBeTruthy();
});

test('an admin is not offered to delete it', async () => {
  serve(as('admin'));
  open('/w/harbour/settings');
  await screen.findByText('Server URLs begin with', {}, patient);
  expect(screen.queryByRole('button', { name: 'Delete workspace' })).toBeNull();
});

test('a deleted workspace is shown with the way back', async () => {
  const received = serve({
    'GET /api/v1/me': {
      body: {
        ...me,
        workspaces: [],
        stopped_workspaces: [
          {
            id: 'ten_2',
            slug: 'quay',
            name: 'Quay',
            role: 'owner',
            delete_after: '2026-02-01T00:00:00Z',
          },
        ],
      },
    },
    'POST /api/v1/workspaces/quay/restore': { status: 204 },
  });
  open('/');
  const user = userEvent.setup();
  await screen.findByText('Quay was deleted', {}, patient);
  await user.click(screen.getByRole('button', { name: 'Restore' }));
  expect(received.some((one) => one.method === 'POST')).toBe(true);
});
