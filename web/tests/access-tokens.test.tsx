import { notifications } from '@mantine/notifications';
import { screen, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import { scopes } from '../src/api/access-tokens';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, refusal, serve } from './server';

afterEach(() => notifications.clean());

const base = '/api/v1/workspaces/harbour';
const token: Schemas['AccessToken'] = {
  id: 'tok_1',
  name: 'Laptop',
  hint: 'ptlp_AbCdEf',
  scopes: ['registry:read'],
  created_at: '2026-01-01T00:00:00Z',
  expires_at: '2026-04-01T00:00:00Z',
};
const patient = { timeout: 20_000 };

test('a personal token is made with its scopes, shown once, and revoked', async () => {
  let items: Schemas['AccessToken'][] = [];
  const received = serve({
    'GET /api/v1/me': { body: me },
    'GET /api/v1/me/access-tokens': () => ({ body: { items } }),
    'POST /api/v1/me/access-tokens': () => {
      items = [token];
      return { status: 201, body: { token, secret: 'ptlp_secret' } };
    },
    'DELETE /api/v1/me/access-tokens/tok_1': () => {
      items = [];
      return { status: 204 };
    },
  });
  open('/account/access-tokens');
  const user = userEvent.setup();
  expect(await screen.findByText('No access tokens', {}, patient)).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'New access token' }));
  const dialog = await screen.findByRole('dialog', {}, patient);
  const make = within(dialog).getByRole('button', { name: 'Create token' });
  await user.type(within(dialog).getByLabelText('Name'), 'Laptop');
  expect(make).toHaveProperty('disabled', true);
  await user.click(within(dialog).getByLabelText('registry:read'));
  await user.click(make);
  expect(await screen.findByText('Authorization: Bearer ptlp_secret', {}, patient)).toBeTruthy();
  const sent = received.find((one) => one.method === 'POST');
  expect(sent?.body).toEqual({ name: 'Laptop', scopes: ['registry:read'], days: 90 });
  await user.click(screen.getByRole('button', { name: 'Done' }));
  await user.click(await screen.findByRole('button', { name: 'Revoke Laptop' }, patient));
  await user.click(await screen.findByRole('button', { name: 'Revoke' }, patient));
  expect(await screen.findByText('No access tokens', {}, patient)).toBeTruthy();
}, 60_000);

test('a workspace token has a role, and a refusal leads to the proof', async () => {
  const received = serve({
    'GET /api/v1/me': { body: me },
    [`GET ${base}/api-keys`]: { body: { items: [] } },
    [`GET ${base}/service-accounts`]: { body: { items: [] } },
    [`GET ${base}/servers`]: { body: { items: [] } },
    [`GET ${base}/access-tokens`]: { body: { items: [] } },
    [`POST ${base}/access-tokens`]: refusal(403, {
      code: 'confirm_first',
      message: 'Confirm that it is you.',
      details: { path: '/account/confirm?request=w.keys.harbour' },
    }),
  });
  open('/w/harbour/keys');
  const user = userEvent.setup();
  const address = `${window.location.origin}/api/v1/workspaces/harbour/mcp`;
  expect(await screen.findByText(address, {}, patient)).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Copy the address of the MCP server' }));
  expect(await navigator.clipboard.readText()).toBe(address);
  await user.click(await screen.findByRole('button', { name: 'New access token' }, patient));
  const dialog = await screen.findByRole('dialog', {}, patient);
  await user.type(within(dialog).getByLabelText('Name'), 'Pipeline');
  await user.click(within(dialog).getByLabelText('audit:read'));
  await user.click(within(dialog).getByRole('button', { name: 'Create token' }));
  const verify = await screen.findByRole('link', { name: 'Verify' }, patient);
  expect(verify.getAttribute('href')).toBe('/account/confirm?request=w.keys.harbour');
  const sent = received.find((one) => one.method === 'POST');
  expect(sent?.body).toEqual({ name: 'Pipeline', role: 'viewer', scopes: ['audit:read'], days: 90 });
}, 60_000);

test('every scope of the document has its words', async () => {
  const { default: document } = await import('../openapi.json');
  const named: readonly string[] = document.components.schemas.ApiScope.enum;
  expect(Object.keys(scopes)).toEqual(named);
});
