// A console API in memory, for working on the console without the server. Never shipped; not a contract: openapi.json is.
// The provider responded from dist/ too, with the console's real CSP, so that `node dev/api.mjs` after `npm run build` is the whole console.
// PORTOLAN_DEV=empty starts with a person without workspaces.
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { routes as accessRoutes } from './access.mjs';
import { routes as attachedRoutes } from './attached.mjs';
import { state } from './data.mjs';
import { offered, routes as offerRoutes } from './offers.mjs';

const dist = join(dirname(fileURLToPath(import.meta.url)), '../dist');
export const csp =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'";
const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};

class Refusal extends Error {
  constructor(status, code, message, more = {}) {
    super(message);
    this.status = status;
    this.body = { error: { code, message, ...more } };
  }
}

const find = (list, id) => {
  const one = list.find((item) => item.id === id && !item.deleted);
  if (!one) throw new Refusal(404, 'not_found', 'This does not exist, or it belongs to another workspace.');
  return one;
};
const now = () => new Date().toISOString();
let next = 100;
const id = (prefix) => `${prefix}_0192${(next++).toString(16).padStart(8, '0')}`;

const summary = ({ input_schema, output_schema, original, definition, warnings, ...tool }) => ({
  ...tool,
  used_by_servers: state.servers
    .filter((s) => !s.deleted && s.tools.some((t) => t.tool_id === tool.id))
    .map((s) => s.slug),
});
const source = ({ deleted, ...one }) => {
  const tools = state.tools.filter((tool) => tool.source_id === one.id);
  return {
    ...one,
    tool_count: tools.length,
    enabled_tool_count: tools.filter((tool) => tool.enabled).length,
  };
};
const workspaceUrl = (one) => one.url.replace(/[^/]+\/mcp$/, 'mcp');
const server = ({ tools, deleted, ...one }) => ({
  ...one,
  ...(one.id === state.defaultServer && { workspace_url: workspaceUrl(one) }),
  tool_count: tools.length,
});
const serverDetail = (one) => ({
  ...server(one),
  tools: one.tools.map((choice) => {
    const tool = find(state.tools, choice.tool_id);
    return {
      ...choice,
      title: tool.title,
      method: tool.method,
      path: tool.path,
      source_name: tool.source_name,
      enabled: tool.enabled,
      state: tool.state,
    };
  }),
  ...(one.slug === 'harbour' ? offered : { prompts: [], resources: [] }),
  warnings:
    one.tools.length > 3
      ? [{ client: 'Cursor', message: 'lists at most 40 tools of all servers together.' }]
      : [],
});
const restorable = (deleted) => new Date(Date.parse(deleted) + 30 * 86_400_000).toISOString();
const trash = () =>
  ['source', 'server']
    .flatMap((kind) =>
      state[`${kind}s`]
        .filter((one) => one.deleted)
        .map(({ id, name, deleted }) => ({
          kind,
          id,
          name,
          deleted_at: deleted,
          restorable_until: restorable(deleted),
        })),
    )
    .sort((one, other) => other.deleted_at.localeCompare(one.deleted_at));
const live = (list) => list.filter((one) => !one.deleted);
const page = (items) => ({ items });

function credentialHint(c) {
  const tail = (text) => `••••${String(text).slice(-4)}`;
  if (c.kind === 'api_key') return `${c.name}: ${tail(c.value)}`;
  if (c.kind === 'bearer') return `Authorization: Bearer ${tail(c.token)}`;
  if (c.kind === 'basic') return `Authorization: Basic ${c.username}:••••`;
  if (c.kind === 'headers') return c.headers.map((h) => `${h.name}: ${tail(h.value)}`).join(', ');
  return `${c.client_id} at ${c.token_url}`;
}

function preview(input) {
  if (input.kind === 'text' && !/openapi|swagger/i.test(input.text)) {
    throw new Refusal(422, 'document_invalid', 'This is not an OpenAPI 3.0 or 3.1 document.', {
      field: 'input',
      details: {
        problems: [
          {
            severity: 'error',
            message: 'The document has no "openapi" field.',
            pointer: '/',
            line: 1,
            column: 1,
          },
        ],
      },
    });
  }
  if (input.kind === 'url' && input.url.includes('nowhere'))
    throw new Refusal(502, 'document_unreachable', 'The host does not answer. Check the URL.');
  return state.preview;
}

const routes = [
  ['GET', '/me', () => state.me],
  [
    'POST',
    '/workspaces',
    (_, body) => {
      if (state.me.workspaces.some((w) => w.slug === body.slug) || body.slug === 'taken') {
        throw new Refusal(409, 'slug_taken', 'This address is taken. Choose another.', { field: 'slug' });
      }
      const made = { id: id('ten'), slug: body.slug, name: body.name, role: 'owner' };
      state.me.workspaces.push(made);
      return { ...made, created_at: now() };
    },
  ],
  [
    'GET',
    '/workspaces/:ws',
    ({ ws }) => ({ ...state.me.workspaces.find((w) => w.slug === ws), created_at: state.created }),
  ],
  [
    'PATCH',
    '/workspaces/:ws',
    ({ ws }, body) => ({
      ...Object.assign(
        state.me.workspaces.find((w) => w.slug === ws),
        body,
      ),
      created_at: state.created,
    }),
  ],
  ['GET', '/workspaces/:ws/limits', () => ({ limits: state.limits, usage: state.usage() })],
  [
    'PATCH',
    '/workspaces/:ws/limits',
    (_, body) => {
      for (const one of state.limits) {
        const wanted = body[one.name];
        if (typeof wanted === 'number' && (wanted < one.minimum || wanted > one.maximum)) {
          throw new Refusal(
            422,
            'limit_out_of_range',
            `Choose a number between 1 and ${one.maximum}, or go back to the default.`,
            { field: one.name, details: { minimum: one.minimum, maximum: one.maximum } },
          );
        }
      }
      for (const one of state.limits) {
        if (one.name in body)
          Object.assign(one, { own: body[one.name], value: body[one.name] ?? one.default });
      }
      return { limits: state.limits, usage: state.usage() };
    },
  ],
  ['GET', '/workspaces/:ws/members', () => page(state.members)],
  ['GET', '/workspaces/:ws/invitations', () => page(state.invitations)],
  ['GET', '/workspaces/:ws/apps', () => page(state.apps)],
  [
    'GET',
    '/workspaces/:ws/overview',
    () => ({
      sources: live(state.sources).length,
      tools_enabled: state.tools.filter((t) => t.enabled).length,
      servers_published: live(state.servers).filter((s) => s.status === 'published').length,
      calls_24h: state.hours(),
      recent_calls: state.calls.slice(0, 6),
      refused_credentials: live(state.sources)
        .filter((s) => s.credential?.state.state === 'refused')
        .map((s) => ({
          source_id: s.id,
          source_name: s.name,
          status: s.credential.state.status,
          at: s.credential.state.at,
        })),
      setup: {
        has_source: live(state.sources).length > 0,
        has_credential: live(state.sources).some((s) => s.credential),
        has_server: live(state.servers).some((s) => s.status === 'published'),
        has_call: state.calls.length > 0,
      },
    }),
  ],
  ['POST', '/workspaces/:ws/imports/preview', (_, body) => preview(body.input)],
  ['GET', '/workspaces/:ws/sources', () => page(live(state.sources).map(source))],
  [
    'POST',
    '/workspaces/:ws/sources',
    (_, body) => {
      const made = {
        id: id('src'),
        name: body.name,
        kind: body.kind,
        base_url: body.base_url ?? '',
        security: body.kind === 'openapi' ? state.preview.security : [],
        settings: { timeout_ms: 30000, max_response_bytes: 1048576, follow_redirects: 'none' },
        credential: null,
        created_at: now(),
        updated_at: now(),
        ...(body.kind === 'openapi'
          ? {
              spec_title: state.preview.title,
              spec_version: state.preview.version,
              document_digest: state.preview.digest,
            }
          : {}),
      };
      state.sources.push(made);
      if (body.kind === 'openapi') {
        for (const op of state.preview.operations.filter((o) => o.status === 'tool')) {
          state.tools.push({
            ...state.tool(op, made),
            id: id('tol'),
            enabled: !body.operations || body.operations.includes(op.key),
          });
        }
      }
      return source(made);
    },
  ],
  ['GET', '/workspaces/:ws/sources/:id', (p) => source(find(state.sources, p.id))],
  [
    'PATCH',
    '/workspaces/:ws/sources/:id',
    (p, body) => source(Object.assign(find(state.sources, p.id), body, { updated_at: now() })),
  ],
  [
    'DELETE',
    '/workspaces/:ws/sources/:id',
    (p) => {
      find(state.sources, p.id).deleted = now();
      return { undo_until: restorable(now()) };
    },
  ],
  [
    'POST',
    '/workspaces/:ws/sources/:id/restore',
    (p) => {
      const one = state.sources.find((s) => s.id === p.id);
      one.deleted = undefined;
      return source(one);
    },
  ],
  [
    'POST',
    '/workspaces/:ws/sources/:id/reimport/preview',
    (_, body) => {
      preview(body.input);
      return state.difference;
    },
  ],
  ['POST', '/workspaces/:ws/sources/:id/reimport', (p) => source(find(state.sources, p.id))],
  [
    'GET',
    '/workspaces/:ws/sources/:id/tools',
    (p) => page(state.tools.filter((t) => t.source_id === p.id).map(summary)),
  ],
  [
    'POST',
    '/workspaces/:ws/sources/:id/tools',
    (p, body) => {
      const owner = find(state.sources, p.id);
      const { enabled = true, ...definition } = body;
      const made = {
        ...state.tool(
          { ...body, tool_name: body.name, title: body.title ?? body.name, read_only: body.method === 'GET' },
          owner,
        ),
        id: id('tol'),
        enabled,
        definition,
      };
      state.tools.push(made);
      return made;
    },
  ],
  [
    'PUT',
    '/workspaces/:ws/sources/:id/credential',
    (p, body) => {
      const one = find(state.sources, p.id);
      one.credential = {
        kind: body.kind,
        hint: credentialHint(body),
        updated_at: now(),
        state: { state: 'never_tried' },
      };
      // The stand-in for an API accepts one key.
      one.tested = body.value === 'harbour-demo-key';
      return one.credential;
    },
  ],
  [
    'POST',
    '/workspaces/:ws/sources/:id/credential/test',
    (p) => {
      const one = find(state.sources, p.id);
      one.credential.state = one.tested
        ? { state: 'works', at: now() }
        : { state: 'refused', status: 401, at: now() };
      return { credential: one.credential };
    },
  ],
  [
    'DELETE',
    '/workspaces/:ws/sources/:id/credential',
    (p) => {
      find(state.sources, p.id).credential = null;
    },
  ],
  ['GET', '/workspaces/:ws/tools', () => page(state.tools.map(summary))],
  [
    'POST',
    '/workspaces/:ws/tools/enabled',
    (_, body) => {
      for (const tool of state.tools) if (body.ids.includes(tool.id)) tool.enabled = body.enabled;
      return { changed: body.ids.length, ids: body.ids };
    },
  ],
  [
    'GET',
    '/workspaces/:ws/tools/:id',
    (p) => ({ ...find(state.tools, p.id), ...summary(find(state.tools, p.id)) }),
  ],
  [
    'PATCH',
    '/workspaces/:ws/tools/:id',
    (p, body) => {
      const tool = find(state.tools, p.id);
      for (const [key, value] of Object.entries(body))
        tool[key] = value === null ? tool.original[key] : value;
      tool.customised = ['name', 'title', 'description'].some((key) => tool[key] !== tool.original[key]);
      return tool;
    },
  ],
  [
    'DELETE',
    '/workspaces/:ws/tools/:id',
    (p) => {
      state.tools.splice(state.tools.indexOf(find(state.tools, p.id)), 1);
    },
  ],
  [
    'PUT',
    '/workspaces/:ws/tools/:id/definition',
    (p, body) => Object.assign(find(state.tools, p.id), { definition: body, name: body.name }),
  ],
  ['POST', '/workspaces/:ws/tools/:id/try', (p, body) => state.run(find(state.tools, p.id), body.arguments)],
  ...offerRoutes,
  ...accessRoutes,
  ...attachedRoutes,
  [
    'GET',
    '/workspaces/:ws/search',
    (_params, _body, _host, query) => {
      const words = (query.get('q') ?? '').toLowerCase().split(/\s+/);
      const things = [
        ...live(state.servers).map((one) => ['server', one.id, one.name, one.slug]),
        ...live(state.sources).map((one) => ['source', one.id, one.name, one.base_url]),
        ...state.tools.map((one) => ['tool', one.id, one.name, `${one.title} · ${one.path}`]),
        ...state.members.map((one) => ['member', one.user_id, one.display_name, one.email]),
      ];
      const found = things.filter((one) => words.every((word) => one.join(' ').toLowerCase().includes(word)));
      return {
        items: found.slice(0, 12).map(([kind, id, name, detail]) => ({ kind, id, name, detail })),
      };
    },
  ],
  [
    'POST',
    '/workspaces/:ws/servers/check',
    (_, { tools }) => ({
      tokens: tools.length * 1430,
      tools: tools.map(({ tool_id }, place) => ({
        tool_id,
        tokens: 1430,
        notes:
          place === 1
            ? ['The description says too little. Describe what the tool does and when to use it.']
            : [],
      })),
      warnings:
        tools.length > 7
          ? [
              {
                client: 'All clients',
                message: `The list takes about ${tools.length * 1430} tokens of each conversation, 5 % of a context of 200000. Choose fewer tools, or publish several smaller servers.`,
              },
            ]
          : [],
    }),
  ],
  ['GET', '/workspaces/:ws/servers', () => page(live(state.servers).map(server))],
  [
    'POST',
    '/workspaces/:ws/servers',
    ({ ws }, body, host) => {
      if (live(state.servers).some((s) => s.slug === body.slug))
        throw new Refusal(
          409,
          'slug_taken',
          'This workspace has a server with this address. Choose another.',
          { field: 'slug' },
        );
      const { tool_ids, ...rest } = body;
      const made = {
        ...rest,
        id: id('srv'),
        status: 'draft',
        url: `http://${host}/t/${ws}/${body.slug}/mcp`,
        created_at: now(),
        updated_at: now(),
        tools: tool_ids.map((tool_id) => ({ tool_id, published_name: find(state.tools, tool_id).name })),
      };
      state.servers.push(made);
      return server(made);
    },
  ],
  ['GET', '/workspaces/:ws/servers/:id', (p) => serverDetail(find(state.servers, p.id))],
  [
    'PATCH',
    '/workspaces/:ws/servers/:id',
    (p, body) => server(Object.assign(find(state.servers, p.id), body, { updated_at: now() })),
  ],
  [
    'DELETE',
    '/workspaces/:ws/servers/:id',
    (p) => {
      find(state.servers, p.id).deleted = now();
      return { undo_until: restorable(now()) };
    },
  ],
  [
    'POST',
    '/workspaces/:ws/servers/:id/restore',
    (p) => {
      const one = state.servers.find((s) => s.id === p.id);
      one.deleted = undefined;
      return server(one);
    },
  ],
  [
    'PUT',
    '/workspaces/:ws/servers/:id/tools',
    (p, body) => {
      const one = find(state.servers, p.id);
      const names = body.tools.map((t) => t.published_name);
      const twice = names.filter((n, i) => names.indexOf(n) !== i);
      if (twice.length > 0)
        throw new Refusal(409, 'name_clash', `Two tools have the name ${twice[0]}. Change one of them.`, {
          details: { names: twice },
        });
      one.tools = body.tools;
      one.updated_at = now();
      return serverDetail(one);
    },
  ],
  [
    'POST',
    '/workspaces/:ws/servers/:id/publish',
    (p) =>
      server(
        Object.assign(find(state.servers, p.id), {
          status: 'published',
          published_at: now(),
          updated_at: now(),
        }),
      ),
  ],
  [
    'POST',
    '/workspaces/:ws/servers/:id/pause',
    (p) => server(Object.assign(find(state.servers, p.id), { status: 'paused', updated_at: now() })),
  ],
  [
    'GET',
    '/workspaces/:ws/servers/:id/connection',
    (p) => {
      const one = find(state.servers, p.id);
      if (one.id !== state.defaultServer) return state.connection(one);
      return { ...state.connection(one), short: state.connection({ ...one, url: workspaceUrl(one) }) };
    },
  ],
  [
    'PUT',
    '/workspaces/:ws/default-server',
    (_, { server_id }) => {
      state.defaultServer = server_id && find(state.servers, server_id).id;
    },
  ],
  ['GET', '/workspaces/:ws/servers/:id/calls', () => page(state.calls)],
  ['GET', '/workspaces/:ws/calls', () => page(state.calls)],
  ['GET', '/workspaces/:ws/trash', () => page(trash())],
  ['GET', '/workspaces/:ws/audit', () => page(state.audit)],
];

function match(method, path) {
  for (const [verb, pattern, handler] of routes) {
    if (verb !== method) continue;
    const want = pattern.split('/');
    const got = path.split('/');
    if (want.length !== got.length) continue;
    const params = {};
    const fits = want.every((part, i) => {
      if (!part.startsWith(':')) return part === got[i];
      params[part.slice(1)] = decodeURIComponent(got[i]);
      return true;
    });
    if (fits) return { handler, params };
  }
  return null;
}

export const app = createServer(async (request, response) => {
  const url = new URL(request.url, 'http://dev');
  if (!url.pathname.startsWith('/api/v1')) {
    let file = join(dist, normalize(url.pathname));
    if (!existsSync(file) || !statSync(file).isFile()) file = join(dist, 'index.html');
    response.writeHead(200, {
      'content-type': types[extname(file)] ?? 'application/octet-stream',
      'content-security-policy': csp,
    });
    createReadStream(file).pipe(response);
    return;
  }
  const send = (status, body) => {
    response.writeHead(body === undefined ? 204 : status, { 'content-type': 'application/json' });
    response.end(body === undefined ? undefined : JSON.stringify(body));
  };
  try {
    const found = match(request.method, url.pathname.slice('/api/v1'.length));
    if (!found) throw new Refusal(404, 'not_found', 'There is nothing at this address.');
    let text = '';
    for await (const part of request) text += part;
    const body = await found.handler(
      found.params,
      text ? JSON.parse(text) : {},
      request.headers.host,
      url.searchParams,
    );
    send(request.method === 'POST' ? 201 : 200, body);
  } catch (error) {
    if (error instanceof Refusal) send(error.status, error.body);
    else send(500, { error: { code: 'internal', message: String(error) } });
  }
});

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const port = Number(process.env.PORT ?? 8080);
  app.listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}`));
}
