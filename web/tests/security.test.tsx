import { notifications } from '@mantine/notifications';
import { screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, refusal, serve } from './server';

// Messages outlive the page that showed them.
afterEach(() => notifications.clean());

const path = '/api/v1/workspaces/harbour/security';
const patient = { timeout: 20_000 };
const security = (rule: Schemas['SecondFactorRule']): Schemas['Security'] => ({
  second_factor: rule,
  members: 5,
  members_with_factor: 3,
  members_with_passkey: 1,
  passkeys_possible: true,
});

test('the rule shows who would be led to enrol, and is set, AUTH-L14', async () => {
  const received = serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}`]: { body: security('off') },
    [`PATCH ${path}`]: { body: security('required') },
  });
  open('/w/harbour/security');
  const user = userEvent.setup();
  await screen.findByText(/3 of 5 members have a second factor, 1 a passkey/, {}, patient);
  const save = screen.getByRole('button', { name: 'Save' });
  expect(save).toHaveProperty('disabled', true);
  await user.click(screen.getByRole('radio', { name: 'A passkey' }));
  expect(screen.getByText('4 of 5 have none yet')).toBeTruthy();
  await user.click(screen.getByRole('radio', { name: 'A second factor' }));
  expect(screen.getByText('2 of 5 have none yet')).toBeTruthy();
  await user.click(save);
  expect(await screen.findByText('Sign-in requirement changed.', {}, patient)).toBeTruthy();
  expect(received.find((one) => one.method === 'PATCH')?.body).toEqual({ second_factor: 'required' });
});

test('who does not meet the rule is led there before she locks herself out, AUTH-L14', async () => {
  serve({
    'GET /api/v1/me': { body: me },
    [`GET ${path}`]: { body: security('off') },
    [`PATCH ${path}`]: refusal(409, {
      code: 'second_factor_first',
      message: 'Sign in this way yourself first.',
      details: { path: '/account/passkeys?request=w.security.harbour' },
    }),
  });
  open('/w/harbour/security');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('radio', { name: 'A passkey' }, patient));
  await user.click(screen.getByRole('button', { name: 'Save' }));
  const link = await screen.findByRole('link', { name: 'Continue' }, patient);
  expect(link.getAttribute('href')).toBe('/account/passkeys?request=w.security.harbour');
});

test('a workspace that asks for more than one signed in with says the way, and nothing else, AUTH-L14', async () => {
  const way = '/account/factor?workspace=harbour&request=w.overview.harbour';
  serve({
    'GET /api/v1/me': { body: me },
    'GET /api/v1/workspaces/harbour/limits': refusal(403, {
      code: 'second_factor_first',
      message: 'This workspace asks its members to sign in with a passkey.',
      details: { path: way },
    }),
  });
  open('/w/harbour/limits');
  const link = await screen.findByRole('link', { name: 'Continue' }, patient);
  expect(link.getAttribute('href')).toBe(way);
  expect(screen.queryByText('You don’t have access')).toBeNull();
});
