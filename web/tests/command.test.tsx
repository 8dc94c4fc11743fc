// The page that gives `portolan login` a token.
import { screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test, vi } from 'vitest';
import { readCommandRequest, returnAddress } from '../src/command-request';
import { open } from './page';
import { me, refusal, serve } from './server';

vi.setConfig({ testTimeout: 40_000 });
const patient = { timeout: 20_000 };
const state = 'S'.repeat(43);
const challenge = 'c'.repeat(43);
const query = `port=49152&state=${state}&challenge=${challenge}&name=ann-laptop`;

test('a request with a part of another form is none', () => {
  expect(readCommandRequest(`?${query}`)).toEqual({ port: 49152, state, challenge, name: 'ann-laptop' });
  for (const [from, to] of [
    ['49152', '0'],
    ['49152', '65536'],
    ['49152', '1.5'],
    ['49152', '80@evil.example'],
    [state, 'short'],
    [challenge, `${'c'.repeat(42)}%26`],
    ['ann-laptop', '%20'],
  ] as const) {
    expect(readCommandRequest(`?${query.replace(from, to)}`), to).toBeUndefined();
  }
  const request = { port: 49152, state, challenge, name: 'x' };
  expect(returnAddress(request, { code: 'a&b' })).toBe(
    `http://127.0.0.1:49152/callback?code=a%26b&state=${state}`,
  );
});

test('a person confirms with the machine, workspace and scopes in sight', async () => {
  const received = serve({
    'GET /api/v1/me': { body: me },
    'POST /api/v1/me/command-tokens': {
      status: 201,
      body: { code: 'one-time', expires_at: '2026-01-01T00:00:00Z' },
    },
  });
  const left = vi.fn();
  vi.stubGlobal('location', { ...window.location, assign: left });
  open(`/account/command?${query}&workspace=harbour`);
  const user = userEvent.setup();
  expect(await screen.findByText('ann-laptop', {}, patient)).toBeTruthy();
  expect(screen.getByText('127.0.0.1:49152')).toBeTruthy();
  await user.click(screen.getByLabelText('Export files and listen to events'));
  await user.click(screen.getByRole('button', { name: 'Sign in the command' }));
  expect(await screen.findByText('Back to the terminal', {}, patient)).toBeTruthy();
  const sent = received.find((one) => one.method === 'POST');
  expect(sent?.body).toMatchObject({
    name: 'portolan on ann-laptop',
    scopes: ['registry:read', 'workspace:read'],
    days: 30,
    workspace: 'harbour',
    code_challenge: challenge,
  });
  expect(left).toHaveBeenCalledWith(`http://127.0.0.1:49152/callback?code=one-time&state=${state}`);
  vi.unstubAllGlobals();
});

test('a refusal leads to the proof, and a page without a request says what to run', async () => {
  serve({
    'GET /api/v1/me': { body: me },
    'POST /api/v1/me/command-tokens': refusal(403, {
      code: 'confirm_first',
      message: 'Confirm that it is you.',
      details: { path: '/account/confirm?request=at.x' },
    }),
  });
  const page = open(`/account/command?${query}`);
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'Sign in the command' }, patient));
  const verify = await screen.findByRole('link', { name: 'Verify' }, patient);
  expect(verify.getAttribute('href')).toBe('/account/confirm?request=at.x');
  page.unmount();
  open('/account/command');
  expect(await screen.findByText('No command is waiting', {}, patient)).toBeTruthy();
});
