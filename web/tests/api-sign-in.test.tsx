import { notifications } from '@mantine/notifications';
import { screen, waitFor, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, refusal, serve } from './server';

const source: Schemas['Source'] = {
  id: 'src_9',
  name: 'Notes',
  kind: 'openapi',
  base_url: 'https://api.example.org',
  settings: { timeout_ms: 30000, max_response_bytes: 1048576, follow_redirects: 'none' },
  tool_count: 2,
  enabled_tool_count: 2,
  credential: null,
  security: [
    {
      kind: 'oauth_authorization_code',
      authorization_url: 'https://login.example.org/auth',
      token_url: 'https://login.example.org/token',
      scopes: ['read', 'write'],
    },
  ],
  created_at: '2026-01-01T00:00:00Z',
  updated_at: '2026-01-01T00:00:00Z',
};

const nothing: Schemas['SignInView'] = {
  sharing: null,
  method: 'code',
  scope: null,
  client: null,
  connection: null,
  linked_persons: 0,
  redirect_uri: 'https://portolan.example/connect/callback/src_9',
};

const own: Schemas['SignInView'] = {
  ...nothing,
  sharing: 'person',
  scope: 'read',
  server: {
    issuer: null,
    authorization_endpoint: 'https://login.example.org/auth',
    token_endpoint: 'https://login.example.org/token',
    revocation_endpoint: null,
  },
  client: { client_id: 'app', kind: 'entered', issuer: 'https://login.example.org' },
  linked_persons: 2,
  own: { status: null, connect_url: 'https://portolan.example/connect/accounts/sealed' },
};

const path = '/api/v1/workspaces/harbour/sources/src_9';
const page = '/w/harbour/sources/src_9?tab=credential';

// Messages outlive the page that showed them.
afterEach(() => notifications.clean());

// The page is loaded when it is needed, which takes its time on a busy machine.
const patience = { timeout: 20_000 };

test('what the document says of the sign-in is filled in, and a client is all that is missing', {
  timeout: 60_000,
}, async () => {
  const user = userEvent.setup();
  let saved = false;
  const received = serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}`]: () => ({ body: saved ? { ...source, sign_in: 'person' } : source }),
    [`GET ${path}/sign-in`]: () => ({ body: saved ? own : nothing }),
    [`PUT ${path}/sign-in`]: () => {
      saved = true;
      return { body: own };
    },
  });
  open(page);
  const token = await screen.findByLabelText<HTMLInputElement>('Token URL', undefined, patience);
  expect(token.value).toBe('https://login.example.org/token');
  expect(screen.getByLabelText<HTMLInputElement>('Authorization URL').value).toBe(
    'https://login.example.org/auth',
  );
  screen.getByText(nothing.redirect_uri);
  await user.click(screen.getByRole('button', { name: 'Save sign-in' }));
  await screen.findByText('Enter the client ID.');
  expect(received.some((one) => one.method === 'PUT')).toBe(false);
  await user.type(screen.getByLabelText('Client ID'), 'app');
  await user.type(screen.getByLabelText('Client secret'), 'Client secret');
  await user.type(screen.getByLabelText('Scopes', { selector: 'input' }), 'read{Enter}');
  await user.click(screen.getByRole('button', { name: 'Save sign-in' }));
  const region = await screen.findByRole('region', { name: 'Your own account' }, patience);
  const sent = received.find((one) => one.method === 'PUT');
  expect(sent?.body).toEqual({
    sharing: 'person',
    method: 'code',
    scope: 'read',
    server: {
      authorization_endpoint: 'https://login.example.org/auth',
      token_endpoint: 'https://login.example.org/token',
    },
    client: { client_id: 'app', client_secret: 'Client secret', auth: 'basic' },
  });
  expect(within(region).getByRole('link', { name: 'Connect my account' }).getAttribute('href')).toBe(
    own.own?.connect_url,
  );
  screen.getByText('2 users have connected an account.');
  // Where each person has their own, there is nothing for one of the workspace to do.
  expect(screen.queryByText('No account connected')).toBeNull();
  expect(screen.queryByRole('button', { name: 'Connect an account' })).toBeNull();
  expect(screen.queryByText('Authentication')).toBeNull();
});

test('an issuer takes the place of the addresses, and a refusal stands at its field', {
  timeout: 60_000,
}, async () => {
  const user = userEvent.setup();
  const received = serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}`]: { body: { ...source, sign_in: 'person' } },
    [`GET ${path}/sign-in`]: { body: own },
    [`PUT ${path}/sign-in`]: refusal(422, {
      code: 'server_unusable',
      message: 'This issuer cannot be used.',
      field: 'server.issuer',
    }),
  });
  open(page);
  await user.click(await screen.findByText('By issuer', undefined, patience));
  const issuer = screen.getByLabelText('Issuer');
  await user.type(issuer, 'https://login.example.org');
  await user.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(issuer.getAttribute('aria-invalid')).toBe('true'), patience);
  const sent = received.find((one) => one.method === 'PUT');
  expect(sent?.body).toEqual({
    sharing: 'person',
    method: 'code',
    scope: 'read',
    server: { issuer: 'https://login.example.org' },
  });
  await user.click(screen.getByText('By endpoint URLs'));
  await user.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(received.filter((one) => one.method === 'PUT').length).toBe(2), patience);
  expect(received.filter((one) => one.method === 'PUT')[1]?.body).toEqual({
    sharing: 'person',
    method: 'code',
    scope: 'read',
  });
});

test('a member sees whose account is used and connects their own, and changes nothing', {
  timeout: 60_000,
}, async () => {
  serve({
    'GET /api/v1/me': {
      body: { ...me, workspaces: [{ id: 'ten_1', slug: 'harbour', name: 'Harbour', role: 'member' }] },
    },
    [`GET ${path}`]: { body: { ...source, sign_in: 'person' } },
    [`GET ${path}/sign-in`]: {
      body: { ...own, own: { status: 'needs_sign_in', connect_url: 'https://portolan.example/connect' } },
    },
  });
  open(page);
  await screen.findByRole('link', { name: 'Reconnect my account' }, patience);
  screen.getByText('Reconnect it: its token is no longer valid.');
  expect(screen.queryByText('Authorization server and client')).toBeNull();
  expect(screen.queryByRole('button', { name: 'Remove sign-in' })).toBeNull();
});
