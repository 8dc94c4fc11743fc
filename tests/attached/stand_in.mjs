// An MCP server on standard input and output, for tests of `portolan attach`. It does what no
// well-behaved server does: it dies in a call, starts badly, and counts what it executes.
//
// Environment: REVISION (2025-11-25 or 2026-07-28), COUNT (file to which each execution adds a
// line), BROKEN (file whose presence makes it end at once).
import { appendFileSync, existsSync } from 'node:fs';
import { createInterface } from 'node:readline';

const revision = process.env.REVISION ?? '2025-11-25';
const modern = revision === '2026-07-28';
if (process.env.BROKEN && existsSync(process.env.BROKEN)) {
  console.error('broken on purpose');
  process.exit(7);
}

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const text = (words) => ({
  content: [{ type: 'text', text: words }],
  ...(modern && { resultType: 'complete' }),
});
const executed = (what) => {
  if (process.env.COUNT) appendFileSync(process.env.COUNT, `${what}\n`);
};
const tool = (name, properties) => ({
  name,
  description: `Tool ${name} of the stand-in.`,
  inputSchema: { type: 'object', properties },
});
const tools = [
  tool('echo', { text: { type: 'string' } }),
  tool('pid', {}),
  tool('slow', { key: { type: 'string' }, ms: { type: 'integer' } }),
  tool('crash', { key: { type: 'string' } }),
  tool('ask', {}),
];
const info = { name: 'stand-in', version: '1.2.3' };
const cancelled = new Map();
const waiting = new Map();
let asked = 0;

async function call(id, params) {
  const { name, arguments: given = {} } = params;
  executed(`${name} ${given.key ?? ''}`);
  switch (name) {
    case 'echo':
      return text(given.text ?? '');
    case 'pid':
      return text(String(process.pid));
    case 'slow': {
      const token = params._meta?.progressToken;
      if (token !== undefined) {
        send({ method: 'notifications/progress', params: { progressToken: token, progress: 1, total: 2 } });
      }
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, given.ms ?? 1000);
        cancelled.set(JSON.stringify(id), () => {
          clearTimeout(timer);
          executed(`cancelled ${given.key ?? ''}`);
          resolve();
        });
      });
      cancelled.delete(JSON.stringify(id));
      return text(`slow ${given.key ?? ''} done`);
    }
    case 'crash':
      process.exit(3);
      break;
    case 'ask': {
      const own = `ask-${++asked}`;
      const answer = await new Promise((resolve) => {
        waiting.set(own, resolve);
        send({
          id: own,
          method: 'elicitation/create',
          params: { message: 'Which?', requestedSchema: { type: 'object', properties: { which: { type: 'string' } } } },
        });
      });
      return text(`answered ${JSON.stringify(answer.result ?? answer.error)}`);
    }
    default:
      return { ...text(`no tool ${name}`), isError: true };
  }
}

async function answer(message) {
  const { id, method, params = {} } = message;
  switch (method) {
    case 'initialize':
      if (modern) return send({ id, error: { code: -32601, message: 'no sessions here' } });
      return send({
        id,
        result: { protocolVersion: params.protocolVersion, capabilities: { tools: { listChanged: true } }, serverInfo: info },
      });
    case 'server/discover':
      if (!modern) return send({ id, error: { code: -32601, message: 'unknown method' } });
      return send({
        id,
        result: {
          resultType: 'complete',
          supportedVersions: [revision],
          capabilities: { tools: {} },
          serverInfo: info,
          _meta: { 'io.modelcontextprotocol/serverInfo': info },
          ttlMs: 0,
          cacheScope: 'private',
        },
      });
    case 'ping':
      return send({ id, result: {} });
    case 'tools/list':
      return send({
        id,
        result: { tools, ...(modern && { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }) },
      });
    case 'tools/call':
      return send({ id, result: await call(id, params) });
    default:
      return send({ id, error: { code: -32601, message: `unknown method ${method}` } });
  }
}

console.error(`stand-in ${revision} is there`);
createInterface({ input: process.stdin })
  .on('line', (line) => {
    const message = JSON.parse(line);
    if (message.method === 'notifications/cancelled') {
      cancelled.get(JSON.stringify(message.params.requestId))?.();
    } else if (message.method === undefined) {
      waiting.get(message.id)?.(message);
    } else if (message.id !== undefined) {
      answer(message);
    }
  })
  .on('close', () => process.exit(0));
