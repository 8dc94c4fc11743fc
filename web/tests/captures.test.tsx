// Captured content: the policy of a server, the reveal of a call, the replay, and saved views.
import { notifications } from '@mantine/notifications';
import { screen, waitFor, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import type { Schemas } from '../src/api/http';
import { comparable, handedOver, keptValue, outcomeOf } from '../src/captured-call';
import { JsonDiff } from '../src/components/line-diff';
import { lineDiff } from '../src/line-diff';
import { alone, open } from './page';
import { me, refusal, serve } from './server';

vi.setConfig({ testTimeout: 40_000 });
afterEach(() => notifications.clean());

const base = '/api/v1/workspaces/harbour';
const patient = { timeout: 20_000 };

const as = (role: Schemas['Role']) => ({
  'GET /api/v1/me': { body: { ...me, workspaces: me.workspaces.map((one) => ({ ...one, role })) } },
});

const server: Schemas['ServerDetail'] = {
  id: 'srv_1',
  slug: 'fleet',
  name: 'Fleet',
  status: 'published',
  url: 'http://console.test/t/harbour/fleet/mcp',
  tool_count: 0,
  created_at: '2026-01-01T00:00:00Z',
  updated_at: '2026-01-01T00:00:00Z',
  tools: [],
  prompts: [],
  resources: [],
  warnings: [],
};

const call: Schemas['CallDetail'] = {
  id: 'call_1',
  at: '2026-01-01T00:00:00Z',
  server_id: 'srv_1',
  server_slug: 'fleet',
  tool_name: 'get_port',
  caller: 'person',
  era: 'session',
  outcome: 'ok',
  timing: { wait_us: 40, backend_us: 9_000, own_us: 3_000, took_us: 12_000 },
  bytes_in: 31,
  bytes_out: 400,
  weight: 1,
  content_until: '2026-01-08T00:00:00Z',
};

const text = (value: unknown, masked = 0): Schemas['CapturedText'] => ({
  text: JSON.stringify(value),
  bytes: 100,
  is_cut: false,
  masked,
});

const content: Schemas['RevealedContent'] = {
  arguments: text({ id: 7, token: '••••' }, 1),
  answer: text({ jsonrpc: '2.0', id: 1, result: { content: [], _meta: { x: 1 } } }),
  ends_at: '2026-01-08T00:00:00Z',
};

test('a difference names removed and added lines, and keeps what is equal', () => {
  const lines = lineDiff('a\nb\nc\nd', 'a\nx\nc\nd\ne');
  expect(lines.map(({ kind, text: line }) => `${kind} ${line}`)).toEqual([
    'same a',
    'removed b',
    'added x',
    'same c',
    'same d',
    'added e',
  ]);
  expect(lineDiff('a', 'a')).toEqual([{ kind: 'same', text: 'a' }]);
  // However long: one side, then the other.
  const many = (sign: string) => Array.from({ length: 3_000 }, (_, n) => `${sign}${n}`).join('\n');
  expect(lineDiff(many('a'), many('b'))).toHaveLength(6_000);
  for (const [before, after] of [
    ['', 'x\ny'],
    ['x\ny\nz', 'y'],
    ['1\n2\n3\n4', '3\n4\n1\n2'],
  ] as const) {
    const both = lineDiff(before, after);
    const side = (kind: string) =>
      both.flatMap((one) => (one.kind === 'same' || one.kind === kind ? [one.text] : [])).join('\n');
    expect([side('removed'), side('added')]).toEqual([before, after]);
  }
});

test('answers are compared without the ids of each', () => {
  const response = keptValue(content.answer);
  expect(comparable(outcomeOf(response))).toEqual({ content: [] });
  expect(keptValue({ text: '{"a":', is_cut: true })).toBeUndefined();
  expect(outcomeOf({ error: { code: 1 } })).toEqual({ code: 1 });
});

test('a difference is read out in words, and an equal answer is said', async () => {
  const { unmount } = alone(<JsonDiff before={{ a: 1, b: 2 }} after={{ a: 1, b: 3 }} label="Difference" />);
  const shown = within(await screen.findByRole('region', { name: 'Difference' }, patient));
  expect(shown.getByText('Removed:')).toBeTruthy();
  expect(shown.getByText('"b": 3', { exact: false })).toBeTruthy();
  unmount();
  alone(<JsonDiff before={{ a: 1 }} after={{ a: 1 }} label="Difference" />);
  expect(await screen.findByText('Both are equal.')).toBeTruthy();
});

test('an admin reveals, hides, and opens the call in the playground', async () => {
  const received = serve({
    ...as('admin'),
    [`GET ${base}/calls/call_1`]: { body: call },
    [`POST ${base}/calls/call_1/reveal`]: { body: content },
    [`GET ${base}/servers/srv_1`]: { body: server },
  });
  const { router } = open('/w/harbour/calls/call_1');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'Reveal' }, patient));
  expect(await screen.findByText('Revealed. The audit log has an entry of it.')).toBeTruthy();
  expect(screen.getByText(/1 place was masked/)).toBeTruthy();
  await user.click(screen.getByRole('button', { name: 'Hide' }));
  expect(await screen.findByRole('button', { name: 'Reveal' })).toBeTruthy();
  expect(received.filter((one) => one.path.endsWith('/reveal'))).toHaveLength(1);
  await user.click(screen.getByRole('button', { name: 'Reveal' }));
  await user.click(await screen.findByRole('button', { name: 'Open in playground' }));
  expect(await screen.findByText(/A replay is a new call, made as you/, {}, patient)).toBeTruthy();
  expect(screen.getByText(/Replace each ••••/)).toBeTruthy();
  expect(router.state.location.search).toEqual({ call: 'call_1' });
  expect(handedOver('call_1')?.arguments).toEqual({ id: 7, token: '••••' });
  expect(handedOver('call_2')).toBeUndefined();
});

test('a refused reveal leads to the proof of identity', async () => {
  const details = { path: '/account/confirm' };
  const error = { code: 'confirm_first', message: 'Confirm that it is you.', details };
  serve({
    ...as('owner'),
    [`GET ${base}/calls/call_1`]: { body: call },
    [`POST ${base}/calls/call_1/reveal`]: refusal(403, error),
  });
  open('/w/harbour/calls/call_1');
  await userEvent.click(await screen.findByRole('button', { name: 'Reveal' }, patient));
  const link = await screen.findByRole('link', { name: 'Verify' });
  expect(link.getAttribute('href')).toBe('/account/confirm');
});

test('members see neither content nor whether there is any', async () => {
  const { content_until: _, ...plain } = call;
  serve({ ...as('developer'), [`GET ${base}/calls/call_1`]: { body: plain } });
  open('/w/harbour/calls/call_1');
  await screen.findByText('Time and size', {}, patient);
  expect(screen.queryByText('Content')).toBeNull();
});

test('a playground that was loaded anew says that the call has to be revealed again', async () => {
  serve({ ...as('owner'), [`GET ${base}/servers/srv_1`]: { body: server } });
  open('/w/harbour/servers/srv_1/playground?call=call_9');
  expect(await screen.findByRole('link', { name: 'Reveal it again' }, patient)).toBeTruthy();
});

test('a policy is changed with its share and days, and faults are named', async () => {
  let capture: Schemas['ServerCapture'] = { policy: 'metadata', days: 7 };
  const received = serve({
    ...as('admin'),
    [`GET ${base}/servers/srv_1`]: { body: server },
    [`GET ${base}/sources`]: { body: { items: [] } },
    [`GET ${base}/tools`]: { body: { items: [] } },
    [`GET ${base}/servers/srv_1/capture`]: () => ({ body: capture }),
    [`PUT ${base}/servers/srv_1/capture`]: ({ body }) => {
      capture = body as Schemas['ServerCapture'];
      return { body: capture };
    },
    [`DELETE ${base}/servers/srv_1/capture/content`]: { body: { calls: 3 } },
  });
  open('/w/harbour/servers/srv_1?tab=settings');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('combobox', { name: 'Keep the content of' }, patient));
  await user.click(
    await screen.findByRole('option', { name: 'A share of all calls', hidden: true }, patient),
  );
  const share = await screen.findByRole('textbox', { name: 'Share' }, patient);
  await user.clear(share);
  await user.click(screen.getByRole('button', { name: 'Save policy' }));
  expect(await screen.findByText('Enter 1 to 99 percent.')).toBeTruthy();
  await user.type(share, '5');
  await user.click(screen.getByRole('button', { name: 'Save policy' }));
  await waitFor(() => expect(capture).toEqual({ policy: 'sample', percent: 5, days: 7 }), patient);
  await user.click(await screen.findByRole('button', { name: 'Delete captured content' }, patient));
  await user.click(await screen.findByRole('button', { name: 'Delete' }, patient));
  expect(await screen.findByText('Content of 3 calls deleted.', {}, patient)).toBeTruthy();
  expect(received.filter((one) => one.method === 'PUT')).toHaveLength(1);
});

test('a view is saved, opened, and deleted with undo', async () => {
  let items: Schemas['CallView'][] = [];
  const saved = (body: unknown): Schemas['CallView'] => ({
    ...(body as Schemas['NewCallViewBody']),
    id: `viw_${items.length}`,
    is_own: true,
  });
  serve({
    ...as('owner'),
    [`GET ${base}/calls`]: { body: { items: [] } },
    [`GET ${base}/call-views`]: () => ({ body: { items } }),
    [`POST ${base}/call-views`]: ({ body }) => {
      items = [...items, saved(body)];
      return { status: 201, body: items.at(-1) };
    },
    [`DELETE ${base}/call-views/viw_0`]: () => {
      items = [];
      return { status: 204 };
    },
  });
  const { router } = open('/w/harbour/calls?outcome=error');
  const user = userEvent.setup();
  await user.click(await screen.findByRole('button', { name: 'Views' }, patient));
  await user.click(await screen.findByRole('menuitem', { name: 'Save view' }, patient));
  await user.type(await screen.findByRole('textbox', { name: 'Name' }, patient), 'Failures');
  await user.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(items).toHaveLength(1), patient);
  expect(items[0]).toMatchObject({ name: 'Failures', filter: { outcome: 'error' }, is_shared: false });
  await router.navigate({ to: '/w/$ws/calls', params: { ws: 'harbour' }, search: {} });
  await user.click(await screen.findByRole('button', { name: 'Views' }, patient));
  await user.click(await screen.findByRole('menuitem', { name: 'Failures' }, patient));
  await waitFor(() => expect(router.state.location.search).toEqual({ outcome: 'error' }), patient);
  await user.click(await screen.findByRole('button', { name: 'Views' }, patient));
  await user.click(await screen.findByRole('menuitem', { name: 'Manage views' }, patient));
  await user.click(await screen.findByRole('button', { name: 'Delete Failures' }, patient));
  await waitFor(() => expect(items).toHaveLength(0), patient);
  await user.click(await screen.findByRole('button', { name: 'Undo' }, patient));
  await waitFor(() => expect(items).toHaveLength(1), patient);
});
