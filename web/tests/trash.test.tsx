// The trash lists what the service can restore, and brings it back.
import { screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { daysLeft } from '../src/time';
import { open } from './page';
import { me, serve } from './server';

const patient = { timeout: 15_000 };
const base = '/api/v1/workspaces/harbour';
const day = 86_400_000;

test('the last hours of a deleted thing read as one day', () => {
  const now = Date.parse('2026-11-24T12:00:00Z');
  expect(daysLeft('2026-12-24T11:00:00Z', now)).toBe('30 days');
  expect(daysLeft('2026-11-24T13:00:00Z', now)).toBe('1 day');
});

test('REVIEW-UX-BUG-2: a deleted source is listed in the trash and restored', async () => {
  const items: Schemas['DeletedThing'][] = [
    {
      kind: 'source',
      id: 'src_1',
      name: 'Fleet',
      deleted_at: new Date(Date.now() - day).toISOString(),
      restorable_until: new Date(Date.now() + 29 * day).toISOString(),
    },
  ];
  const received = serve({
    'GET /api/v1/me': { body: me },
    [`GET ${base}/trash`]: () => ({ body: { items: [...items] } }),
    [`POST ${base}/sources/src_1/restore`]: () => {
      items.pop();
      return { body: {} };
    },
  });
  open('/w/harbour/trash');
  const user = userEvent.setup();
  await screen.findByText('29 days', {}, patient);
  await user.click(screen.getByRole('button', { name: 'Restore Fleet' }));
  await screen.findByText('The trash is empty', {}, patient);
  await waitFor(() => expect(received.some((one) => one.path.endsWith('/src_1/restore'))).toBe(true));
});
