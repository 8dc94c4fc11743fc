// The playground's MCP client: event streams, both eras, what is declared, and what the timeline keeps.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ClientSettings, Listener } from '../src/mcp/connection';
import type { Members, RpcMessage } from '../src/mcp/messages';
import { mirrored } from '../src/mcp/mirrored';
import { SessionConnection } from '../src/mcp/session';
import { EventReader } from '../src/mcp/sse';
import { StatelessConnection } from '../src/mcp/stateless';
import { asCurl, asJson, Timeline } from '../src/mcp/timeline';
import { expand, variablesOf } from '../src/mcp/uri-template';
import { Wire } from '../src/mcp/wire';

interface Sent {
  method: string;
  headers: Record<string, string>;
  message: RpcMessage | undefined;
  signal: AbortSignal | undefined;
}

const url = 'http://console.test/t/acme/tools/mcp';
const settings: ClientSettings = { elicitation: true, sampling: true, roots: [], tasks: true, level: null };
let sent: Sent[];
let reply: (one: Sent) => Response | Promise<Response>;

beforeEach(() => {
  sent = [];
  vi.stubGlobal('fetch', async (_: string, init: RequestInit) => {
    const headers = Object.fromEntries(
      (init.headers as [string, string][]).map(([name, value]) => [name.toLowerCase(), value]),
    );
    const message = init.body ? (JSON.parse(String(init.body)) as RpcMessage) : undefined;
    const one = { method: init.method ?? 'GET', headers, message, signal: init.signal ?? undefined };
    sent.push(one);
    return reply(one);
  });
});
afterEach(() => vi.unstubAllGlobals());

const json = (message: object, headers: Record<string, string> = {}, status = 200) =>
  new Response(JSON.stringify(message), {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  });
const result = (one: Sent, value: object, headers = {}) =>
  json({ jsonrpc: '2.0', id: one.message?.id, result: value }, headers);
const event = (message: object, id?: string) =>
  `${id ? `id: ${id}\n` : ''}data: ${JSON.stringify(message)}\n\n`;
const stream = (...parts: string[]) =>
  new Response(parts.join(''), { headers: { 'content-type': 'text/event-stream; charset=utf-8' } });

const facts = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'harbour', version: '1' },
};

function listener(over: Partial<Listener> = {}): Listener {
  return {
    ask: async () => ({ action: 'accept' }),
    notice: () => undefined,
    ended: () => undefined,
    ...over,
  };
}

async function session(over: Partial<Listener> = {}, answer = reply) {
  const own = answer;
  reply = (one) => {
    if (one.message?.method === 'initialize') return result(one, facts, { 'mcp-session-id': 'S1' });
    if (one.message?.method === 'notifications/initialized') return new Response(null, { status: 202 });
    if (one.method === 'GET' && !one.headers['last-event-id']) return new Response(null, { status: 405 });
    return own(one);
  };
  const timeline = new Timeline();
  const connection = new SessionConnection(new Wire(url, 'secret-token', timeline), listener(over), settings);
  await connection.open();
  return { connection, timeline };
}

test('an event stream is read in any parts, with every line end', () => {
  const text =
    ': hello\r\nid: 1\r\nretry: 500\r\ndata:\r\n\r\nid:2\ndata: {"a":\ndata: 1}\n\ndata: x\r\rdata: lost';
  for (const size of [1, 2, 3, 7, text.length]) {
    const reader = new EventReader();
    const events = [];
    for (let at = 0; at < text.length; at += size) events.push(...reader.take(text.slice(at, at + size)));
    expect(events).toEqual([
      { id: '1', retry: 500, data: '' },
      { id: '2', retry: undefined, data: '{"a":\n1}' },
      { id: undefined, retry: undefined, data: 'x' },
    ]);
  }
});

test('a session names itself and its version on every later request', async () => {
  reply = (one) => result(one, { tools: [{ name: 'echo' }] });
  const { connection } = await session();
  expect(await connection.list('tools/list', 'tools')).toEqual([{ name: 'echo' }]);
  const [initialize, , , list] = sent;
  expect(initialize?.message?.params).toMatchObject({
    protocolVersion: '2025-11-25',
    capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } },
  });
  expect(initialize?.headers['mcp-session-id']).toBeUndefined();
  expect(list?.headers).toMatchObject({
    authorization: 'Bearer secret-token',
    'mcp-session-id': 'S1',
    'mcp-protocol-version': '2025-11-25',
    accept: 'application/json, text/event-stream',
  });
  expect(connection.server.name).toBe('harbour');
});

test('a question on the stream of a call is answered by a request of its own', async () => {
  const asked: Members[] = [];
  reply = (one) => {
    if (one.message?.method !== 'tools/call') return new Response(null, { status: 202 });
    const question = {
      jsonrpc: '2.0',
      id: 'q1',
      method: 'elicitation/create',
      params: { message: 'Which?' },
    };
    const progress = { progressToken: 'progress-2', progress: 1, total: 2, message: 'half' };
    return stream(
      event({ jsonrpc: '2.0', method: 'notifications/progress', params: progress }, 'a'),
      event(question, 'b'),
      event({ jsonrpc: '2.0', id: one.message?.id, result: { content: [] } }, 'c'),
    );
  };
  const { connection } = await session({
    ask: async (_, params) => {
      asked.push(params);
      return { action: 'accept', content: { berth: 'N3' } };
    },
  });
  const seen: unknown[] = [];
  const done = await connection.request('tools/call', { name: 'x' }, { onProgress: (one) => seen.push(one) });
  expect(done).toEqual({ content: [] });
  expect(seen).toEqual([{ progress: 1, total: 2, message: 'half' }]);
  await vi.waitFor(() =>
    expect(sent.at(-1)?.message).toEqual({
      jsonrpc: '2.0',
      id: 'q1',
      result: { action: 'accept', content: { berth: 'N3' } },
    }),
  );
  expect(asked).toEqual([{ message: 'Which?' }]);
});

test('a broken stream is resumed after its last event', async () => {
  reply = (one) => {
    if (one.method === 'GET') {
      expect(one.headers['last-event-id']).toBe('e1');
      return stream(event({ jsonrpc: '2.0', id: 2, result: { content: [] } }, 'e2'));
    }
    return stream('retry: 1\nid: e1\ndata:\n\n');
  };
  const { connection, timeline } = await session();
  expect(await connection.request('tools/call', { name: 'slow' })).toEqual({ content: [] });
  expect(timeline.snapshot().map((one) => one.label)).toContain('tools/call (resumed)');
});

test('a cancelled call of a session is told to the server', async () => {
  const stop = new AbortController();
  reply = (one) => {
    if (one.message?.method === 'tools/call') {
      queueMicrotask(() => stop.abort());
      return new Promise<Response>(() => undefined);
    }
    return new Response(null, { status: 202 });
  };
  const { connection } = await session();
  const call = connection.request('tools/call', { name: 'slow' }, { signal: stop.signal });
  await expect(call).rejects.toMatchObject({ name: 'AbortError' });
  await vi.waitFor(() =>
    expect(sent.at(-1)?.message).toMatchObject({
      method: 'notifications/cancelled',
      params: { requestId: 2 },
    }),
  );
});

test('an error of the server keeps its code and data', async () => {
  reply = (one) =>
    json({
      jsonrpc: '2.0',
      id: one.message?.id,
      error: { code: -32602, message: 'No such tool', data: { a: 1 } },
    });
  const { connection } = await session();
  await expect(connection.request('tools/call', { name: 'none' })).rejects.toMatchObject({
    code: -32602,
    message: 'No such tool',
    data: { a: 1 },
  });
});

function stateless(over: Partial<Listener> = {}) {
  const timeline = new Timeline();
  const wire = new Wire(url, 'secret-token', timeline);
  return {
    connection: new StatelessConnection(wire, listener(over), { ...settings, level: 'info' }),
    timeline,
  };
}

test('a request of 2026-07-28 carries version, capabilities and mirrored headers', async () => {
  reply = (one) => result(one, { resultType: 'complete', content: [] });
  const { connection } = stateless();
  const inputSchema = {
    properties: { region: { type: 'string', 'x-mcp-header': 'Region' }, plain: { type: 'string' } },
  };
  const params = { name: 'échelle', arguments: { region: 'nord', plain: 'x' } };
  await connection.request('tools/call', params, { inputSchema });
  const [one] = sent;
  expect(one?.headers).toMatchObject({
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': '=?base64?w6ljaGVsbGU=?=',
    'mcp-param-region': 'nord',
  });
  expect(one?.headers['mcp-param-plain']).toBeUndefined();
  expect(one?.message?.params?._meta).toMatchObject({
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/logLevel': 'info',
    'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {}, url: {} }, sampling: {} },
  });
});

test('a question of 2026-07-28 is answered by the same call with its state', async () => {
  reply = (one) =>
    one.message?.params?.requestState === 'sealed'
      ? result(one, { resultType: 'complete', content: [{ type: 'text', text: 'done' }] })
      : result(one, {
          resultType: 'input_required',
          requestState: 'sealed',
          inputRequests: { which: { method: 'elicitation/create', params: { message: 'Which?' } } },
        });
  const { connection } = stateless({ ask: async () => ({ action: 'decline' }) });
  const done = await connection.request('tools/call', { name: 'book', arguments: {} });
  expect(done.content).toEqual([{ type: 'text', text: 'done' }]);
  expect(sent[1]?.message?.params).toMatchObject({
    name: 'book',
    requestState: 'sealed',
    inputResponses: { which: { action: 'decline' } },
  });
  expect(sent[0]?.message?.id).not.toBe(sent[1]?.message?.id);
});

test('the subscriptions of 2026-07-28 are one stream, opened anew for a change', async () => {
  const notices: string[] = [];
  reply = (one) => {
    const acknowledged = { jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params: {} };
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(event(acknowledged)));
        one.signal?.addEventListener('abort', () => controller.error(new DOMException('', 'AbortError')));
      },
    });
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  };
  const { connection } = stateless({ notice: ({ method = '' }) => notices.push(method) });
  await connection.subscribe([]);
  await connection.subscribe(['note:one']);
  expect(sent).toHaveLength(2);
  expect(sent[0]?.signal?.aborted).toBe(true);
  expect(sent[1]?.message?.params?.notifications).toMatchObject({ resourceSubscriptions: ['note:one'] });
  expect(notices).toEqual(Array(2).fill('notifications/subscriptions/acknowledged'));
  await connection.close();
});

test('PLAY-4: the token is in no exchange, and in nothing that is copied', async () => {
  reply = (one) => result(one, { content: [] });
  const { connection, timeline } = await session();
  await connection.request('tools/call', { name: "it's", arguments: { text: 'a "quoted" one' } });
  const last = timeline.snapshot().at(-1);
  if (!last) throw new Error('no exchange');
  const curl = asCurl(last);
  expect(curl).toContain('-H "Authorization: Bearer $PORTOLAN_TOKEN"');
  expect(curl).toContain(`"name":"it'\\''s"`);
  const copied = JSON.parse(asJson(last));
  expect(copied.request.body.params.arguments).toEqual({ text: 'a "quoted" one' });
  expect(copied.response.messages[0].body.result).toEqual({ content: [] });
  expect(JSON.stringify(timeline.snapshot()) + curl + asJson(last)).not.toContain('secret-token');
  expect(last.bytesOut).toBeGreaterThan(40);
  expect(last.status).toBe(200);
});

test('a header holds any text', () => {
  expect(mirrored('plain text')).toBe('plain text');
  expect(mirrored(' edge')).toBe('=?base64?IGVkZ2U=?=');
  expect(mirrored('=?base64?eA==?=')).toBe('=?base64?PT9iYXNlNjQ/ZUE9PT89?=');
});

test('URI templates are expanded as RFC 6570 has them', () => {
  expect(variablesOf('files://{path}{?a,b}')).toEqual(['path', 'a', 'b']);
  expect(expand('files://{path}', { path: 'a b/c' })).toBe('files://a%20b%2Fc');
  expect(expand('files:///{+path}{?a,b}', { path: 'a/b', b: '1&2' })).toBe('files:///a/b?b=1%262');
  expect(expand('x{/a}{#b}', { a: 'one', b: 'two' })).toBe('x/one#two');
});
