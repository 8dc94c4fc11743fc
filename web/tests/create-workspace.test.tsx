import { screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test } from 'vitest';
import { open } from './page';
import { me, refusal, serve } from './server';

test('the name suggests the address, and a taken address is said at its field without losing anything', async () => {
  const user = userEvent.setup();
  const received = serve({
    'GET /api/v1/me': { body: { ...me, workspaces: [] } },
    'POST /api/v1/workspaces': refusal(409, {
      code: 'slug_taken',
      message: 'This address is taken. Choose another.',
      field: 'slug',
    }),
  });
  open('/');
  await user.type(await screen.findByRole('textbox', { name: /Workspace name/ }), 'Nordhavn Ltd');
  const address = screen.getByRole<HTMLInputElement>('textbox', { name: /Address/ });
  expect(address.value).toBe('nordhavn-ltd');
  await user.click(screen.getByRole('button', { name: 'Create workspace' }));
  expect(await screen.findByText('This address is taken. Choose another.')).toBeTruthy();
  expect(address.getAttribute('aria-invalid')).toBe('true');
  expect(received.at(-1)?.body).toEqual({ name: 'Nordhavn Ltd', slug: 'nordhavn-ltd' });
  expect(screen.getByRole<HTMLInputElement>('textbox', { name: /Workspace name/ }).value).toBe(
    'Nordhavn Ltd',
  );
});

test('a workspace of somebody else is "no such workspace", and says who is signed in', async () => {
  serve({ 'GET /api/v1/me': { body: me } });
  open('/w/elsewhere');
  expect(await screen.findByRole('heading', { name: 'No such workspace' })).toBeTruthy();
  expect(screen.getByText(/ada@example.org/)).toBeTruthy();
});
