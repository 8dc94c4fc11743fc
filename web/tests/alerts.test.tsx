import { notifications } from '@mantine/notifications';
import { screen, waitFor, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import type { Schemas } from '../src/api/http';
import { open } from './page';
import { me, serve } from './server';

afterEach(() => notifications.clean());

const base = '/api/v1/workspaces/harbour';
const alert: Schemas['Alert'] = {
  id: 'alr_1',
  rule: 'credential_refused',
  subject: 'src_1',
  severity: 'critical',
  text: 'The API of Orders refuses its credential: HTTP status 401.',
  page: '/limits',
  state: 'firing',
  count: 3,
  fired_at: '2026-01-01T00:00:00Z',
  last_at: '2026-01-02T00:00:00Z',
  unread: true,
};
const rule: Schemas['AlertRuleView'] = {
  name: 'credential_refused',
  title: 'Credential refused',
  description: 'An API refuses the credential of a source.',
  severity: 'critical',
  enabled: true,
  mail: true,
};
const patient = { timeout: 20_000 };

function scene() {
  let unread = true;
  let rules = [rule];
  const page = () => ({ body: { items: [{ ...alert, unread }], unread: unread ? 1 : 0 } });
  const read = () => {
    unread = false;
    return { status: 204 };
  };
  return serve({
    'GET /api/v1/me': { body: me },
    [`GET ${base}/alerts`]: page,
    [`POST ${base}/alerts/read`]: read,
    [`POST ${base}/alerts/alr_1/read`]: read,
    [`GET ${base}/alert-rules`]: () => ({ body: { items: rules } }),
    [`PATCH ${base}/alert-rules/credential_refused`]: ({ body }) => {
      const { mute_hours, ...rest } = body as Schemas['AlertRuleChange'];
      const muted = mute_hours ? { muted_until: '2099-01-01T00:00:00Z' } : {};
      rules = [{ ...rule, ...(rest as object), ...muted }];
      return { body: { items: rules } };
    },
  });
}

test('the bell counts unread alerts, and an alert leads to its page', async () => {
  const received = scene();
  const { router } = open('/w/harbour/alerts');
  const user = userEvent.setup();
  const bells = await screen.findAllByRole('button', { name: 'Alerts, 1 unread' }, patient);
  await user.click(bells[0] as HTMLElement);
  const menu = await screen.findByRole('menu', {}, patient);
  await user.click(within(menu).getByText(alert.text));
  await waitFor(() => expect(router.state.location.pathname).toBe('/w/harbour/limits'), patient);
  expect(received.some((one) => one.path === `${base}/alerts/alr_1/read`)).toBe(true);
  expect((await screen.findAllByRole('button', { name: 'Alerts, none unread' }, patient)).length).toBe(2);
}, 30_000);

test('all alerts are marked as read, and a rule is switched and muted', async () => {
  const received = scene();
  open('/w/harbour/alerts');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'Mark all as read' }, patient));
  expect((await screen.findAllByRole('button', { name: 'Alerts, none unread' }, patient)).length).toBe(2);
  expect(screen.queryByRole('button', { name: 'Mark all as read' })).toBeNull();
  await user.click(await screen.findByLabelText('Credential refused: mail', {}, patient));
  await user.click(await screen.findByRole('button', { name: 'Mute Credential refused' }, patient));
  await user.click(await screen.findByRole('menuitem', { name: 'For a day' }, patient));
  expect(await screen.findByText(/Muted until/, {}, patient)).toBeTruthy();
  expect(received.filter((one) => one.method === 'PATCH').map((one) => one.body)).toEqual([
    { mail: false },
    { mute_hours: 24 },
  ]);
}, 30_000);
