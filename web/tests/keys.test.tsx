import { notifications } from '@mantine/notifications';
import { screen, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, refusal, serve } from './server';

afterEach(() => notifications.clean());

const base = '/api/v1/workspaces/harbour';
const key: Schemas['ApiKey'] = {
  id: 'key_1',
  name: 'Laptop',
  hint: 'mcpk_AbCdEf',
  holder: 'usr_1',
  holder_name: 'Ada',
  networks: ['192.0.2.0/24'],
  created_at: '2026-01-01T00:00:00Z',
  expires_at: '2026-04-01T00:00:00Z',
};
const account: Schemas['ServiceAccount'] = {
  id: 'svc_1',
  name: 'Nightly',
  auth: 'client_secret',
  enabled: true,
  created_at: '2026-01-01T00:00:00Z',
  secrets: [{ id: 'sec_1', hint: 'cs_AbCdEf', created_at: '2026-01-01T00:00:00Z' }],
};
const pipeline: Schemas['TrustedPipeline'] = {
  id: 'pip_1',
  name: 'Deploy',
  issuer: 'https://token.actions.githubusercontent.com',
  audience: 'https://portolan.example',
  subject: 'repo:acme/web:ref:refs/heads/main',
  claims: { environment: 'production' },
  role: 'developer',
  scopes: ['registry:write'],
  minutes: 15,
  created_at: '2026-01-01T00:00:00Z',
  refusals: [
    {
      reason: 'subject',
      message: 'The subject of the job does not fit.',
      seen: 'repo:acme/web:pull_request',
      times: 3,
      last_at: '2026-01-02T00:00:00Z',
    },
  ],
};
const as = (role: Schemas['Role']): Schemas['Me'] => ({
  ...me,
  workspaces: me.workspaces.map((one) => ({ ...one, role })),
});
const lists = (role: Schemas['Role'] = 'owner') => ({
  'GET /api/v1/me': { body: as(role) },
  [`GET ${base}/api-keys`]: { body: { items: [key] } },
  [`GET ${base}/service-accounts`]: { body: { items: [account] } },
  [`GET ${base}/access-tokens`]: { body: { items: [] } },
  [`GET ${base}/trusted-pipelines`]: { body: { items: [pipeline] } },
  [`GET ${base}/servers`]: { body: { items: [] } },
});
const patient = { timeout: 20_000 };

test('a new key is shown once, with the header that it is sent in', async () => {
  const received = serve({
    ...lists(),
    [`POST ${base}/api-keys`]: { status: 201, body: { key, secret: 'mcpk_secret' } },
  });
  open('/w/harbour/keys');
  const user = userEvent.setup();
  expect(await screen.findByText('mcpk_AbCdEf…', {}, patient)).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'New API key' }));
  const dialog = await screen.findByRole('dialog', {}, patient);
  const make = within(dialog).getByRole('button', { name: 'Create key' });
  expect(make).toHaveProperty('disabled', true);
  await user.type(within(dialog).getByLabelText('Name'), 'Laptop');
  await user.type(within(dialog).getByLabelText('Allowed networks'), '192.0.2.0/24, 2001:db8::/32');
  await user.click(make);
  expect(await screen.findByText('Authorization: Bearer mcpk_secret', {}, patient)).toBeTruthy();
  const sent = received.find((one) => one.method === 'POST');
  expect(sent?.body).toEqual({ name: 'Laptop', days: 90, networks: ['192.0.2.0/24', '2001:db8::/32'] });
}, 30_000);

test('keys of an account are not taken as text, and a refusal leads to the proof', async () => {
  const received = serve({
    ...lists(),
    [`POST ${base}/service-accounts`]: refusal(403, {
      code: 'confirm_first',
      message: 'Confirm that it is you.',
      details: { path: '/account/confirm?request=w.keys.harbour' },
    }),
  });
  open('/w/harbour/keys');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'New service account' }, patient));
  const dialog = await screen.findByRole('dialog', {}, patient);
  await user.type(within(dialog).getByLabelText('Name'), 'Weekly');
  await user.click(within(dialog).getByText('Private key (JWT)'));
  await user.type(within(dialog).getByLabelText('Public keys'), 'not a key set');
  await user.click(within(dialog).getByRole('button', { name: 'Create account' }));
  expect(await screen.findByText('Enter an https URL or a JWK set in JSON.')).toBeTruthy();
  expect(received.some((one) => one.method === 'POST')).toBe(false);
  await user.clear(within(dialog).getByLabelText('Public keys'));
  await user.type(within(dialog).getByLabelText('Public keys'), 'https://app.example/keys.json');
  await user.click(within(dialog).getByRole('button', { name: 'Create account' }));
  const way = await screen.findByRole('link', { name: 'Verify' }, patient);
  expect(way.getAttribute('href')).toBe('/account/confirm?request=w.keys.harbour');
  const sent = received.find((one) => one.method === 'POST');
  expect(sent?.body).toEqual({
    name: 'Weekly',
    auth: 'private_key_jwt',
    jwks_uri: 'https://app.example/keys.json',
  });
}, 30_000);

test('an account is switched off, and a secret is revoked only when that is confirmed', async () => {
  const received = serve({
    ...lists(),
    [`PATCH ${base}/service-accounts/svc_1`]: { body: { ...account, enabled: false } },
    [`DELETE ${base}/service-accounts/svc_1/secrets/sec_1`]: { status: 204 },
  });
  open('/w/harbour/keys');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'Disable Nightly' }, patient));
  expect(await screen.findByText('Nightly is disabled.', {}, patient)).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Revoke the secret cs_AbCdEf of Nightly' }));
  const dialog = await screen.findByRole('dialog', {}, patient);
  expect(received.some((one) => one.method === 'DELETE')).toBe(false);
  await user.click(within(dialog).getByRole('button', { name: 'Revoke' }));
  expect(await screen.findByText('The secret was revoked.', {}, patient)).toBeTruthy();
}, 30_000);

test('an account gets access to the management API, with the request for a token', async () => {
  const access = { role: 'viewer', scopes: ['registry:read'], changed_at: '2026-01-02T00:00:00Z' } as const;
  let given = false;
  const received = serve({
    ...lists(),
    [`GET ${base}/service-accounts`]: () => ({
      body: { items: [given ? { ...account, api_access: access } : account] },
    }),
    [`PUT ${base}/service-accounts/svc_1/api-access`]: () => {
      given = true;
      return { body: { ...account, api_access: access } };
    },
    [`DELETE ${base}/service-accounts/svc_1/api-access`]: () => {
      given = false;
      return { status: 204 };
    },
  });
  open('/w/harbour/keys');
  const user = userEvent.setup();
  expect(await screen.findByText(/Management API: no access/, {}, patient)).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Management API access of Nightly' }));
  const dialog = await screen.findByRole('dialog', { name: 'Management API access of Nightly' }, patient);
  expect(within(dialog).queryByText(/oauth\/token/)).toBeNull();
  const give = within(dialog).getByRole('button', { name: 'Give access' });
  await user.click(give);
  expect(await within(dialog).findByText('Choose at least one scope.')).toBeTruthy();
  await user.click(within(dialog).getByLabelText('registry:read'));
  await user.click(give);
  const code = await within(dialog).findByText(/oauth\/token/, {}, patient);
  expect(code.textContent).toContain('-u "svc_1:$CLIENT_SECRET"');
  expect(code.textContent).toContain(`resource=${window.location.origin}/api/v1/workspaces/harbour`);
  expect(received.find((one) => one.method === 'PUT')?.body).toEqual({
    role: 'viewer',
    scopes: ['registry:read'],
  });

  await user.click(within(dialog).getByRole('button', { name: 'Remove access' }));
  const asked = await screen.findByRole(
    'dialog',
    { name: 'Remove the access to the management API?' },
    patient,
  );
  expect(received.some((one) => one.method === 'DELETE')).toBe(false);
  await user.click(within(asked).getByRole('button', { name: 'Remove access' }));
  expect(await screen.findByText('Nightly has no access to the management API.', {}, patient)).toBeTruthy();
  expect(await screen.findByText(/Management API: no access/, {}, patient)).toBeTruthy();
}, 30_000);

test('new access without a recent sign-in leads to the proof', async () => {
  serve({
    ...lists('admin'),
    [`PUT ${base}/service-accounts/svc_1/api-access`]: refusal(403, {
      code: 'confirm_first',
      message: 'Confirm that it is you.',
      details: { path: '/account/confirm?request=w.keys.harbour' },
    }),
  });
  open('/w/harbour/keys');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'Management API access of Nightly' }, patient));
  const dialog = await screen.findByRole('dialog', {}, patient);
  await user.click(within(dialog).getByLabelText('audit:read'));
  await user.click(within(dialog).getByRole('button', { name: 'Give access' }));
  const way = await screen.findByRole('link', { name: 'Verify' }, patient);
  expect(way.getAttribute('href')).toBe('/account/confirm?request=w.keys.harbour');
}, 30_000);

test('a member sees keys and no service accounts; a viewer makes none', async () => {
  serve(lists('viewer'));
  open('/w/harbour/keys');
  expect(await screen.findByText('mcpk_AbCdEf…', {}, patient)).toBeTruthy();
  expect(screen.queryByRole('button', { name: 'New API key' })).toBeNull();
  expect(screen.queryByText('Service accounts')).toBeNull();
}, 30_000);

test('a pipeline is trusted with the conditions of its form, and a refusal stands at its field', async () => {
  const received = serve({
    ...lists(),
    [`POST ${base}/trusted-pipelines`]: refusal(422, {
      code: 'issuer_unusable',
      message: 'This issuer cannot be used: it is away.',
      field: 'issuer',
    }),
  });
  open('/w/harbour/keys');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'Trust a pipeline' }, patient));
  const dialog = await screen.findByRole('dialog', {}, patient);
  const save = within(dialog).getByRole('button', { name: 'Trust pipeline' });
  await user.click(save);
  expect(await within(dialog).findByText('Enter the subject of the job.')).toBeTruthy();
  await user.type(within(dialog).getByLabelText(/^Name/), 'Release');
  await user.type(within(dialog).getByLabelText(/^Subject/), 'repo:acme/web:*');
  await user.type(within(dialog).getByLabelText('Further claims'), 'no value');
  expect(
    await within(dialog).findByText('Write each claim on a line of its own, as name = value.'),
  ).toBeTruthy();
  await user.clear(within(dialog).getByLabelText('Further claims'));
  await user.type(
    within(dialog).getByLabelText('Further claims'),
    'environment = production{Enter}ref=refs/heads/main',
  );
  await user.click(within(dialog).getByLabelText('registry:read'));
  await user.click(save);
  expect(
    await within(dialog).findByText('This issuer cannot be used: it is away.', {}, patient),
  ).toBeTruthy();
  const sent = received.find((one) => one.method === 'POST');
  expect(sent?.body).toEqual({
    name: 'Release',
    issuer: 'https://token.actions.githubusercontent.com',
    subject: 'repo:acme/web:*',
    claims: { environment: 'production', ref: 'refs/heads/main' },
    role: 'developer',
    scopes: ['registry:read'],
    minutes: 15,
  });
}, 30_000);

test('a trusted pipeline shows its refusals, is changed, and is deleted when that is confirmed', async () => {
  const received = serve({
    ...lists(),
    [`PUT ${base}/trusted-pipelines/pip_1`]: { body: { ...pipeline, minutes: 30 } },
    [`DELETE ${base}/trusted-pipelines/pip_1`]: { status: 204 },
  });
  open('/w/harbour/keys');
  const user = userEvent.setup();
  expect(await screen.findByText('repo:acme/web:pull_request', {}, patient)).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Change Deploy' }));
  const form = await screen.findByRole('dialog', {}, patient);
  expect(within(form).getByLabelText('Further claims')).toHaveProperty('value', 'environment = production');
  await user.clear(within(form).getByLabelText(/^Minutes/));
  await user.type(within(form).getByLabelText(/^Minutes/), '30');
  await user.click(within(form).getByRole('button', { name: 'Save' }));
  expect(await screen.findByText('Deploy was changed.', {}, patient)).toBeTruthy();
  const { id: _, created_at: __, refusals: ___, ...trust } = pipeline;
  expect(received.find((one) => one.method === 'PUT')?.body).toEqual({ ...trust, minutes: 30 });
  await user.click(await screen.findByRole('button', { name: 'Delete Deploy' }, patient));
  const asked = await screen.findByRole('dialog', { name: 'Delete this trusted pipeline?' }, patient);
  expect(received.some((one) => one.method === 'DELETE')).toBe(false);
  await user.click(within(asked).getByRole('button', { name: 'Delete' }));
  expect(await screen.findByText('Deploy was deleted.', {}, patient)).toBeTruthy();
}, 30_000);
