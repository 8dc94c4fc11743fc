import { notifications } from '@mantine/notifications';
import { screen, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, refusal, serve } from './server';

// Messages outlive the page that showed them.
afterEach(() => notifications.clean());

const base = '/api/v1/workspaces/harbour';
const member = (id: string, name: string, role: Schemas['Role']): Schemas['Member'] => ({
  user_id: id,
  display_name: name,
  email: `${name.toLowerCase()}@example.org`,
  role,
  since: '2026-01-01T00:00:00Z',
});
const people = [member('usr_1', 'Ada', 'owner'), member('usr_2', 'Bob', 'developer')];
const as = (role: Schemas['Role']): Schemas['Me'] => ({
  ...me,
  workspaces: me.workspaces.map((one) => ({ ...one, role })),
});
const invitation: Schemas['Invitation'] = {
  id: 'inv_1',
  email: 'kim@example.org',
  role: 'viewer',
  invited_by: 'Ada',
  created_at: '2026-01-01T00:00:00Z',
  expires_at: '2026-01-08T00:00:00Z',
};
const lists = (role: Schemas['Role'] = 'owner', invitations: Schemas['Invitation'][] = []) => ({
  'GET /api/v1/me': { body: as(role) },
  [`GET ${base}/members`]: { body: { items: people } },
  [`GET ${base}/invitations`]: { body: { items: invitations } },
});
const patient = { timeout: 20_000 };

test('an admin invites somebody by mail, with a role no stronger than their own', async () => {
  const received = serve({
    ...lists('admin'),
    [`POST ${base}/invitations`]: { status: 201, body: invitation },
  });
  open('/w/harbour/members');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'Invite' }, patient));
  const dialog = await screen.findByRole('dialog', {}, patient);
  const send = within(dialog).getByRole('button', { name: 'Send invitation' });
  expect(send).toHaveProperty('disabled', true);
  await user.type(within(dialog).getByLabelText('E-mail address'), ' kim@example.org ');
  await user.click(within(dialog).getByRole('combobox', { name: 'Role' }));
  const offered = (await screen.findAllByRole('option', { hidden: true })).map((one) => one.textContent);
  expect(offered).toEqual(expect.arrayContaining(['Viewer', 'Admin']));
  expect(offered).not.toContain('Owner');
  await user.click(send);
  expect(await screen.findByText('Invitation sent to kim@example.org.', {}, patient)).toBeTruthy();
  const sent = received.find((one) => one.method === 'POST');
  expect(sent?.body).toEqual({ email: 'kim@example.org', role: 'member' });
}, 30_000);

test('who only looks sees no way to change anything, but may leave', async () => {
  serve({ ...lists('viewer') });
  open('/w/harbour/members');
  expect(await screen.findByText('bob@example.org', {}, patient)).toBeTruthy();
  expect(screen.queryByRole('button', { name: 'Invite' })).toBeNull();
  expect(screen.queryByRole('button', { name: 'Remove Bob' })).toBeNull();
  expect(screen.queryByRole('combobox', { name: 'Role of Bob' })).toBeNull();
  expect(screen.getByRole('button', { name: 'Leave the workspace' })).toBeTruthy();
}, 30_000);

test('a removal asks first, and leads to the page that asks for the password when that is due', async () => {
  const received = serve({
    ...lists(),
    [`DELETE ${base}/members/usr_2`]: refusal(403, {
      code: 'confirm_first',
      message: 'Confirm that it is you.',
      details: { path: '/account/confirm?request=w.members.harbour' },
    }),
  });
  open('/w/harbour/members');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'Remove Bob' }, patient));
  const dialog = await screen.findByRole('dialog', {}, patient);
  expect(received.some((one) => one.method === 'DELETE')).toBe(false);
  await user.click(within(dialog).getByRole('button', { name: 'Remove' }));
  const way = await screen.findByRole('link', { name: 'Verify' }, patient);
  expect(way.getAttribute('href')).toBe('/account/confirm?request=w.members.harbour');
}, 30_000);

test('an invitation that waits can be taken back', async () => {
  const received = serve({
    ...lists('owner', [invitation]),
    [`DELETE ${base}/invitations/inv_1`]: { status: 204 },
  });
  open('/w/harbour/members');
  const user = userEvent.setup();
  const button = await screen.findByRole(
    'button',
    { name: 'Revoke the invitation to kim@example.org' },
    patient,
  );
  await user.click(button);
  expect(await screen.findByText('Invitation revoked.', {}, patient)).toBeTruthy();
  expect(received.some((one) => one.method === 'DELETE')).toBe(true);
}, 30_000);

test('connected apps name who they act for, and an app by its host and not by its own word', async () => {
  const app: Schemas['ConnectedApp'] = {
    id: 'gr_1',
    name: 'Claude',
    client_id: 'https://evil.example/client.json',
    user_id: 'usr_2',
    user_name: 'Bob',
    user_email: 'bob@example.org',
    resource: 'https://mcp.example.org/t/harbour/mcp',
    scopes: ['mcp'],
    created_at: '2026-01-01T00:00:00Z',
    last_used_at: null,
    expires_at: '2026-04-01T00:00:00Z',
    refreshes: 0,
  };
  const received = serve({
    ...lists(),
    [`GET ${base}/apps`]: { body: { items: [app] } },
    [`DELETE ${base}/apps/gr_1`]: { status: 204 },
  });
  open('/w/harbour/apps');
  const user = userEvent.setup();
  expect(await screen.findByText('evil.example', {}, patient)).toBeTruthy();
  expect(screen.getByText('never')).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Disconnect Claude of Bob' }));
  expect(await screen.findByText('Claude was disconnected.', {}, patient)).toBeTruthy();
  expect(received.some((one) => one.method === 'DELETE')).toBe(true);
}, 30_000);
