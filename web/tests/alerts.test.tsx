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
  thresholds: [],
  counts: [],
};
const threshold = { value: 0, own: null, minimum: 1, maximum: 100 };
const rate: Schemas['AlertRuleView'] = {
  ...rule,
  name: 'error_rate',
  title: 'Calls fail',
  description: 'Many calls of a server fail.',
  thresholds: [
    { ...threshold, name: 'percent', value: 8, own: 8, default: 5 },
    { ...threshold, name: 'minutes', value: 15, default: 15, minimum: 5, maximum: 60 },
    { ...threshold, name: 'min_calls', value: 50, default: 50, maximum: 1_000_000 },
  ],
  counts: [{ name: 'Orders', page: '/calls?server=orders&outcome=error', part: 3, whole: 60 }],
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

test('thresholds are shown with present counts, checked, sent and taken back to defaults', async () => {
  let refuses = true;
  const received = serve({
    'GET /api/v1/me': { body: me },
    [`GET ${base}/alerts`]: { body: { items: [], unread: 0 } },
    [`GET ${base}/alert-rules`]: { body: { items: [rate] } },
    [`PATCH ${base}/alert-rules/error_rate`]: () => {
      if (!refuses) return { body: { items: [rate] } };
      refuses = false;
      const message = 'Choose a number between 5 and 60, or the default.';
      return { status: 422, body: { error: { code: 'threshold_out_of_range', message, field: 'minutes' } } };
    },
  });
  open('/w/harbour/alerts');
  const user = userEvent.setup();
  const link = await screen.findByRole('link', { name: 'Orders: 3 of 60 calls failed (5 %)' }, patient);
  expect(link.getAttribute('href')).toBe('/w/harbour/calls?server=orders&outcome=error');
  expect(screen.getByText(/Fires at 8 % failed calls of a server in 15 minutes, from 50 calls/)).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Thresholds: Calls fail' }));
  const dialog = await screen.findByRole('dialog', {}, patient);
  const minutes = within(dialog).getByRole('textbox', { name: 'Minutes that count' });
  await user.clear(minutes);
  await user.type(minutes, '61');
  await user.click(within(dialog).getByRole('button', { name: 'Save' }));
  expect(await within(dialog).findByText('Enter a whole number from 5 to 60.', {}, patient)).toBeTruthy();
  expect(received.some((one) => one.method === 'PATCH')).toBe(false);
  await user.clear(minutes);
  await user.type(minutes, '30');
  await user.click(within(dialog).getByRole('button', { name: 'Save' }));
  expect(await within(dialog).findByText(/between 5 and 60, or the default/, {}, patient)).toBeTruthy();
  await user.click(within(dialog).getByRole('button', { name: 'Use defaults' }));
  await user.click(within(dialog).getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull(), patient);
  expect(received.filter((one) => one.method === 'PATCH').map((one) => one.body)).toEqual([
    { percent: 8, minutes: 30, min_calls: null },
    { percent: null, minutes: null, min_calls: null },
  ]);
}, 30_000);
