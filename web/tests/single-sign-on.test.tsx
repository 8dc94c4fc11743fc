import { notifications } from '@mantine/notifications';
import { screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, refusal, serve } from './server';

// Messages outlive the page that showed them.
afterEach(() => notifications.clean());

const path = '/api/v1/workspaces/harbour/single-sign-on';
const patient = { timeout: 20_000 };
const nothing: Schemas['SingleSignOn'] = { provider: null, domains: [], may_enforce: false };
const provider: Schemas['IdentityProvider'] = {
  name: 'Acme',
  issuer: 'https://id.acme.example',
  client_id: 'portolan',
  has_secret: true,
  callback_url: 'https://portolan.example/login/callback/idp_1',
  enforced: false,
  turned_off: false,
};
const domain: Schemas['TenantDomain'] = {
  id: 'dom_1',
  domain: 'acme.example',
  record_name: '_portolan.acme.example',
  record_text: 'portolan-verify=123',
  verified_at: null,
  checked_at: null,
  missing_since: null,
};

test('a provider is entered, and a refusal stands at its field, AUTH-F7', async () => {
  let tries = 0;
  const received = serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}`]: { body: nothing },
    [`PUT ${path}/provider`]: () => {
      tries += 1;
      return tries === 1
        ? refusal(422, { code: 'issuer_unusable', message: 'This provider cannot be used.', field: 'issuer' })
        : { body: { ...nothing, provider } };
    },
  });
  open('/w/harbour/single-sign-on');
  const user = userEvent.setup();
  await user.type(await screen.findByLabelText(/Button label/, {}, patient), 'Acme');
  await user.type(screen.getByLabelText(/Issuer/), 'https://id.acme.example');
  await user.type(screen.getByLabelText(/Client ID/), 'portolan');
  await user.type(screen.getByLabelText(/Client secret/), 'planted');
  await user.click(screen.getByRole('button', { name: 'Set up' }));
  expect(await screen.findByText('This provider cannot be used.', {}, patient)).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Set up' }));
  expect(await screen.findByText('Provider saved.', {}, patient)).toBeTruthy();
  expect(received.filter((one) => one.method === 'PUT').at(-1)?.body).toEqual({
    name: 'Acme',
    issuer: 'https://id.acme.example',
    client_id: 'portolan',
    client_secret: 'planted',
  });
});

test('a provider that an operator turned off is saved again to turn it on, AUTH-F7', async () => {
  const received = serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}`]: { body: { ...nothing, provider: { ...provider, turned_off: true } } },
    [`PUT ${path}/provider`]: { body: { ...nothing, provider } },
  });
  open('/w/harbour/single-sign-on');
  const user = userEvent.setup();
  expect(await screen.findByText(/An operator turned this provider off/, {}, patient)).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Save' }));
  expect(await screen.findByText('Provider saved.', {}, patient)).toBeTruthy();
  expect(received.filter((one) => one.method === 'PUT').at(-1)?.body).toEqual({
    name: 'Acme',
    issuer: 'https://id.acme.example',
    client_id: 'portolan',
  });
});

test('a domain shows the record that proves it, and a check says what is missing, AUTH-F7', async () => {
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}`]: { body: { provider, domains: [domain], may_enforce: false } },
    [`POST ${path}/domains/dom_1/check`]: refusal(409, {
      code: 'record_missing',
      message: 'There is no such TXT record yet.',
    }),
  });
  open('/w/harbour/single-sign-on');
  const user = userEvent.setup();
  expect(await screen.findByText('_portolan.acme.example', {}, patient)).toBeTruthy();
  expect(screen.getByText('portolan-verify=123')).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Check' }));
  expect(await screen.findByText('There is no such TXT record yet.', {}, patient)).toBeTruthy();
});

test('who did not come by the provider is led there before it is the only way, AUTH-F7', async () => {
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}`]: { body: { provider, domains: [], may_enforce: false } },
    [`PUT ${path}/enforcement`]: refusal(409, {
      code: 'company_sign_in_first',
      message: 'Sign in with the provider yourself first.',
      details: { path: '/login/company/harbour?request=w.single-sign-on.harbour' },
    }),
  });
  open('/w/harbour/single-sign-on');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('switch', { name: /Members must sign in/ }, patient));
  const link = await screen.findByRole('link', { name: 'Continue' }, patient);
  expect(link.getAttribute('href')).toBe('/login/company/harbour?request=w.single-sign-on.harbour');
});
