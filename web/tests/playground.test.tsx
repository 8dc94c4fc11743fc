// The page of the playground before a connection, its OAuth flow, and the editor of arguments.
import { screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { useState } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import type { Schemas } from '../src/api/http';
import { ArgumentsEditor, draftOf } from '../src/components/arguments-editor';
import { authorize, callbackPath, channelOf, clientId, handOver } from '../src/mcp/authorize';
import { alone, open } from './page';
import { me, serve } from './server';

vi.setConfig({ testTimeout: 30_000 });
afterEach(() => vi.unstubAllGlobals());

const patient = { timeout: 20_000 };
const path = '/api/v1/workspaces/harbour';

const server = (status: Schemas['Server']['status']): Schemas['ServerDetail'] => ({
  id: 'srv_1',
  slug: 'fleet',
  name: 'Fleet',
  status,
  url: 'http://console.test/t/harbour/fleet/mcp',
  tool_count: 0,
  created_at: '2026-01-01T00:00:00Z',
  updated_at: '2026-01-01T00:00:00Z',
  tools: [],
  prompts: [],
  resources: [],
  warnings: [],
});

test('a draft says that it has to be published first', async () => {
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}/servers/srv_1`]: { body: server('draft') },
  });
  open('/w/harbour/servers/srv_1/playground');
  await screen.findByText(/Publish it to connect/, {}, patient);
  expect(screen.getByRole<HTMLButtonElement>('button', { name: 'Connect as me' }).disabled).toBe(true);
});

test('a blocked window is said in words, and the page can try again', async () => {
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}/servers/srv_1`]: { body: server('published') },
  });
  vi.spyOn(window, 'open').mockReturnValue(null);
  open('/w/harbour/servers/srv_1/playground');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'Connect as me' }, patient));
  await screen.findByText(/The browser blocked the window/, {}, patient);
  expect(screen.getByRole<HTMLButtonElement>('button', { name: 'Connect as me' }).disabled).toBe(false);
  vi.restoreAllMocks();
});

/** Stands in for the authorization server: the window's address answers at once, by the callback's channel. */
function authorizationServer(answer: (query: URLSearchParams) => Record<string, string>) {
  const tokens: URLSearchParams[] = [];
  const asked: URLSearchParams[] = [];
  vi.stubGlobal('fetch', async (url: string, init?: RequestInit) => {
    if (url.startsWith('/.well-known/')) {
      const issuer = 'http://console.test';
      return Response.json({
        issuer,
        authorization_endpoint: `${issuer}/oauth/authorize`,
        token_endpoint: `${issuer}/oauth/token`,
      });
    }
    tokens.push(new URLSearchParams(String(init?.body)));
    return Response.json({ access_token: 'at', expires_in: 3600 });
  });
  const location = {
    set href(address: string) {
      const query = new URL(address).searchParams;
      asked.push(query);
      void handOver(answer(query));
    },
  };
  vi.spyOn(window, 'open').mockReturnValue({ location, close: () => undefined } as unknown as Window);
  return { tokens, asked };
}

const resource = 'http://console.test/t/harbour/fleet/mcp';
const signal = new AbortController().signal;

test('PLAY-1: the flow uses PKCE, and its answer must name this issuer and state', async () => {
  const good = (query: URLSearchParams) => ({
    code: 'ac_1',
    state: query.get('state') ?? '',
    iss: 'http://console.test',
  });
  const { tokens, asked } = authorizationServer(good);
  const authorized = await authorize(resource, { another: false, signal });
  expect(authorized.accessToken).toBe('at');
  const [query] = asked;
  const [form] = tokens;
  expect(query?.get('client_id')).toBe(clientId);
  expect(query?.get('redirect_uri')).toBe(`http://console.test${callbackPath}`);
  expect(query?.get('code_challenge_method')).toBe('S256');
  expect(query?.has('prompt')).toBe(false);
  const verifier = form?.get('code_verifier') ?? '';
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier));
  const challenge = btoa(String.fromCharCode(...new Uint8Array(digest)));
  const plain = challenge.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
  expect(query?.get('code_challenge')).toBe(plain);
  expect(form?.get('resource')).toBe(resource);

  vi.restoreAllMocks();
  const foreign = authorizationServer((one) => ({ ...good(one), iss: 'http://evil.example' }));
  await expect(authorize(resource, { another: false, signal })).rejects.toMatchObject({ code: 'issuer' });
  expect(foreign.tokens).toEqual([]);

  vi.restoreAllMocks();
  const denied = authorizationServer((one) => ({
    error: 'access_denied',
    state: one.get('state') ?? '',
    iss: 'http://console.test',
  }));
  const another = authorize(resource, { another: true, signal });
  await expect(another).rejects.toMatchObject({ message: 'Access was not allowed.' });
  expect(denied.asked[0]?.get('prompt')).toBe('login');
  vi.restoreAllMocks();
});

test('an answer of another flow is taken by none', async () => {
  const other = new BroadcastChannel(channelOf('another'));
  let got = 0;
  other.onmessage = () => {
    got += 1;
  };
  expect(await handOver({ code: 'ac_1', state: 'mine' }, 200)).toBe(false);
  expect(got).toBe(0);
  other.close();
});

const schema = { type: 'object', properties: { text: { type: 'string' } } };

function Editor({ see }: { see: (value: unknown) => void }) {
  const [draft, setDraft] = useState(() => draftOf({}));
  return (
    <ArgumentsEditor
      schema={schema}
      draft={draft}
      onChange={(next) => {
        see(next.value);
        setDraft(next);
      }}
    />
  );
}

test('PLAY-5: form and JSON edit one value, and JSON that cannot be read stays', async () => {
  let seen: unknown;
  const see = (value: unknown) => {
    seen = value;
  };
  alone(<Editor see={see} />);
  const user = userEvent.setup();
  const odd = 'a "b" \\ c';
  await user.type(await screen.findByRole('textbox', { name: 'text' }, patient), odd);
  await user.click(screen.getByText('JSON'));
  const raw = () => screen.getByRole<HTMLTextAreaElement>('textbox', { name: 'Arguments as JSON' });
  expect(JSON.parse(raw().value)).toEqual({ text: odd });
  await user.clear(raw());
  await user.type(raw(), '{{"text": "x", "more": [[1]}');
  expect(seen).toEqual({ text: 'x', more: [1] });
  await user.click(screen.getByText('Form'));
  expect(screen.getByRole<HTMLInputElement>('textbox', { name: 'text' }).value).toBe('x');
  await user.click(screen.getByText('JSON'));
  await user.type(raw(), '!');
  expect(seen, 'the last good value').toEqual({ text: 'x', more: [1] });
  expect(screen.getByRole<HTMLInputElement>('radio', { name: 'Form' }).disabled).toBe(true);
});
