// The content of the in-memory API: a harbour office with a few tools, servers and calls.
import { attachedSource } from './attached.mjs';

const ago = (minutes) => new Date(Date.now() - minutes * 60_000).toISOString();
const empty = process.env.PORTOLAN_DEV === 'empty';

const operation = (method, path, tool_name, title, tags, more = {}) => ({
  key: `${method} ${path}`,
  method,
  path,
  tool_name,
  title,
  description: `${title}. Times are UTC.`,
  tags,
  deprecated: false,
  status: 'tool',
  warnings: [],
  read_only: method === 'GET',
  destructive: method === 'DELETE',
  ...more,
});

const operations = [
  operation('GET', '/ports', 'list_ports', 'List ports', ['ports']),
  operation('GET', '/ports/{code}', 'get_port', 'Get a port', ['ports']),
  operation('GET', '/ports/{code}/tides', 'get_tides', 'Tide table of a port', ['ports', 'tides'], {
    warnings: ['The parameter "datum" has no type in the document; any value is accepted.'],
  }),
  operation('GET', '/ships', 'search_ships', 'Search ships', ['ships']),
  operation('GET', '/ships/{imo}/photo', 'get_ship_photo', 'Photo of a ship', ['ships']),
  operation('POST', '/berths', 'book_berth', 'Book a berth', ['berths']),
  operation('PATCH', '/berths/{id}', 'change_booking', 'Change a booking', ['berths']),
  operation('DELETE', '/berths/{id}', 'cancel_booking', 'Cancel a booking', ['berths']),
  operation('GET', '/v1/positions', 'positions_v1', 'Positions of ships', ['ships'], { deprecated: true }),
  {
    ...operation('GET', '/stream/positions', undefined, 'Live positions', ['ships']),
    status: 'left_out',
    reason: 'Its only answer is an event stream (text/event-stream), which a tool call cannot carry.',
  },
  {
    ...operation('POST', '/webhooks', undefined, 'Register a webhook', ['hooks']),
    status: 'left_out',
    reason:
      'Its body refers to another document (https://schemas.example.org/hook.json). Put the schema into this document.',
  },
];

const berthSchema = {
  type: 'object',
  required: ['port', 'ship', 'arrival', 'cargo'],
  properties: {
    port: {
      type: 'string',
      description: 'UN/LOCODE of the port',
      pattern: '^[A-Z]{5}$',
      examples: ['DKCPH'],
    },
    ship: { type: 'integer', description: 'IMO number', minimum: 1000000, maximum: 9999999 },
    arrival: { type: 'string', format: 'date-time', description: 'Expected time of arrival' },
    cargo: { type: 'string', enum: ['bulk', 'container', 'liquid', 'passengers'] },
    pilot: { type: 'boolean', description: 'Whether a pilot comes aboard', default: true },
    contacts: {
      type: 'array',
      maxItems: 5,
      items: {
        type: 'object',
        required: ['name'],
        properties: {
          name: { type: 'string' },
          phone: { type: 'string', description: 'With the country code' },
        },
      },
    },
    draught: {
      type: 'object',
      properties: {
        bow: { type: 'number', description: 'In metres' },
        stern: { type: 'number', description: 'In metres' },
      },
    },
  },
};

const pathSchema = (path) => {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map((m) => m[1]);
  return {
    type: 'object',
    required: names,
    properties: {
      ...Object.fromEntries(
        names.map((name) => [name, { type: 'string', description: `The ${name} in the path` }]),
      ),
      limit: { type: 'integer', minimum: 1, maximum: 200, default: 50, description: 'How many at most' },
      query: { type: 'string', description: 'Words to look for' },
    },
  };
};

function tool(op, source) {
  const original = { name: op.tool_name, title: op.title, description: op.description };
  return {
    ...original,
    source_id: source.id,
    source_name: source.name,
    method: op.method,
    path: op.path,
    state: 'active',
    annotations: {
      readOnlyHint: op.read_only,
      destructiveHint: Boolean(op.destructive),
      idempotentHint: op.method !== 'POST',
    },
    used_by_servers: [],
    customised: false,
    original,
    input_schema: op.method === 'POST' ? berthSchema : pathSchema(op.path),
    output_schema:
      op.method === 'GET'
        ? {
            type: 'object',
            properties: {
              items: {
                type: 'array',
                items: { type: 'object', properties: { code: { type: 'string' }, name: { type: 'string' } } },
              },
              next: { type: ['string', 'null'] },
            },
          }
        : undefined,
    warnings: op.warnings ?? [],
  };
}

const sources = empty
  ? []
  : [
      {
        id: 'src_0192a',
        name: 'Harbour Office API',
        kind: 'openapi',
        base_url: 'https://api.harbour.example/v2',
        spec_title: 'Harbour Office API',
        spec_version: '2.4.0',
        document_url: 'https://api.harbour.example/openapi.json',
        document_digest: 'sha256:4c1f9e0b77aa2d31',
        settings: { timeout_ms: 30000, max_response_bytes: 1048576, follow_redirects: 'same_origin' },
        credential: {
          kind: 'api_key',
          hint: 'X-Api-Key: ••••cafe',
          updated_at: ago(2000),
          state: { state: 'refused', status: 401, at: ago(40) },
        },
        security: [
          {
            kind: 'api_key',
            name: 'X-Api-Key',
            location: 'header',
            description: 'Ask the harbour office for a key.',
          },
        ],
        created_at: ago(9000),
        updated_at: ago(300),
      },
      {
        id: 'src_0192b',
        name: 'Warehouse',
        kind: 'http',
        base_url: 'https://stock.example.org',
        settings: { timeout_ms: 10000, max_response_bytes: 262144, follow_redirects: 'none' },
        credential: null,
        security: [],
        created_at: ago(4000),
        updated_at: ago(1500),
      },
      attachedSource,
    ];

const tools = empty
  ? []
  : [
      ...operations
        .filter((op) => op.status === 'tool')
        .map((op, i) => ({ ...tool(op, sources[0]), id: `tol_0192${i}`, enabled: !op.deprecated })),
      {
        ...tool(operation('GET', '/items/{sku}', 'get_stock', 'Stock of an item', []), sources[1]),
        id: 'tol_0192x',
        enabled: true,
        customised: true,
        original: { name: 'get_stock', title: 'Stock of an item', description: 'Stock.' },
        definition: {
          name: 'get_stock',
          title: 'Stock of an item',
          description: 'Stock of one item, by warehouse.',
          method: 'GET',
          path: '/items/{sku}',
          parameters: [
            {
              name: 'sku',
              in: 'path',
              required: true,
              schema: { type: 'string' },
              description: 'Stock number',
            },
          ],
        },
      },
    ];

const servers = empty
  ? []
  : [
      {
        id: 'srv_0192a',
        slug: 'harbour',
        name: 'Harbour desk',
        description: 'Ports, tides and berths for the people at the desk.',
        status: 'published',
        url: 'http://127.0.0.1:8080/t/nordhavn/harbour/mcp',
        tools: ['tol_01920', 'tol_01921', 'tol_01922', 'tol_01925'].map((tool_id) => ({
          tool_id,
          published_name: tools.find((t) => t.id === tool_id).name,
        })),
        created_at: ago(8000),
        updated_at: ago(90),
        published_at: ago(7000),
      },
      {
        id: 'srv_0192b',
        slug: 'stock',
        name: 'Stock',
        status: 'draft',
        url: 'http://127.0.0.1:8080/t/nordhavn/stock/mcp',
        tools: [{ tool_id: 'tol_0192x', published_name: 'get_stock' }],
        created_at: ago(1200),
        updated_at: ago(1100),
      },
    ];

const outcomes = [
  'ok',
  'ok',
  'ok',
  'ok',
  'tool_error',
  'ok',
  'ok',
  'invalid_arguments',
  'ok',
  'upstream_error',
  'ok',
  'ok',
];
const calls = empty
  ? []
  : outcomes.map((outcome, i) => ({
      at: ago(3 + i * i * 7),
      server_slug: 'harbour',
      tool_name: ['get_tides', 'list_ports', 'book_berth', 'get_port'][i % 4],
      client_name: ['Claude', 'Cursor', 'ChatGPT'][i % 3],
      user_name: ['Ada Nordström', 'Jonas Lind'][i % 2],
      outcome,
      ...(outcome === 'ok' ? { status: 200 } : outcome === 'tool_error' ? { status: 409 } : {}),
      duration_ms: 60 + ((i * 173) % 900),
    }));

const shape = [4, 2, 1, 0, 0, 3, 9, 21, 38, 45, 52, 40, 31, 47, 58, 61, 44, 30, 22, 18, 25, 19, 11, 14];

const limit = (name, unit, usual, maximum, more = {}) => ({
  name,
  unit,
  value: more.own ?? usual,
  default: usual,
  own: null,
  minimum: 1,
  maximum,
  in_use: null,
  refused: 0,
  ...more,
});
const limits = [
  limit('tenant_calls', 'per_minute', 6000, 12000, { own: 240, refused: empty ? 0 : 583 }),
  limit('client_requests', 'per_minute', 600, 1200),
  limit('tool_calls', 'per_minute', null, 12000),
  limit('running_calls', 'at_once', 64, 128, { in_use: empty ? 0 : 61, refused: empty ? 0 : 4 }),
  limit('open_streams', 'at_once', 1000, 2000, { in_use: empty ? 0 : 12 }),
  limit('stream_opens', 'per_minute', 600, 6000),
  limit('session_streams', 'at_once', 4, 40),
  limit('listens', 'at_once', 50, 500),
  limit('parked_calls', 'at_once', 16, 160),
  limit('tasks', 'at_once', 64, 640),
];
const usage = () => {
  const first = Math.floor(Date.now() / 300_000) * 300_000 - 71 * 300_000;
  const buckets = Array.from({ length: 72 }, (_, i) => {
    const busiest = empty ? 0 : Math.max(0, Math.round(150 + 130 * Math.sin(i / 7) + ((i * 37) % 41) - 20));
    return {
      at: new Date(first + i * 300_000).toISOString(),
      calls: busiest * 3,
      busiest_minute: Math.min(240, busiest),
      refused: Math.max(0, busiest - 240),
    };
  });
  return { from: new Date(first).toISOString(), bucket_minutes: 5, buckets };
};

/** The two messages of a trial, as the service shows them. */
function exchange(tool, url, args, type, text) {
  const sent = tool.method === 'GET' ? undefined : JSON.stringify(args);
  const body = (value) => (value === undefined ? {} : { body: { text: value, bytes: value.length } });
  return {
    request: {
      method: tool.method,
      url,
      headers: [
        { name: 'accept', value: 'application/json, */*;q=0.5' },
        { name: 'x-api-key', value: '••••' },
        ...(sent ? [{ name: 'content-type', value: 'application/json' }] : []),
        { name: 'user-agent', value: 'Portolan/0.1.0' },
        { name: 'host', value: 'api.harbour.example' },
      ],
      ...body(sent),
    },
    response: {
      status: 200,
      headers: [
        { name: 'content-type', value: type },
        { name: 'set-cookie', value: '••••' },
        { name: 'date', value: 'Tue, 24 Nov 2026 09:12:44 GMT' },
      ],
      ...(text === undefined ? { body: { bytes: 2048 } } : body(text)),
    },
  };
}

export const state = {
  limits,
  defaultServer: servers[0]?.id,
  usage,
  created: ago(20000),
  me: {
    user: { id: 'usr_0192a', email: 'ada@nordhavn.example', display_name: 'Ada Nordström' },
    workspaces: empty
      ? []
      : [
          { id: 'ten_0192a', slug: 'nordhavn', name: 'Nordhavn Logistics', role: 'owner' },
          { id: 'ten_0192b', slug: 'ada-lab', name: 'Ada’s lab', role: 'owner' },
        ],
    dev_mailbox_url: '/dev/mail',
    demo_api: {
      openapi_url: 'http://127.0.0.1:8090/openapi.json',
      base_url: 'http://127.0.0.1:8090',
      title: 'Harbour demo API',
      api_key: 'harbour-demo-key',
    },
  },
  members: [
    {
      user_id: 'usr_0192a',
      display_name: 'Ada Nordström',
      email: 'ada@nordhavn.example',
      role: 'owner',
      since: ago(20000),
    },
    {
      user_id: 'usr_0192b',
      display_name: 'Jonas Lind',
      email: 'jonas@nordhavn.example',
      role: 'developer',
      since: ago(9000),
    },
  ],
  invitations: [
    {
      id: 'inv_0192a',
      email: 'kim.van.der.berg@nordhavn.example',
      role: 'viewer',
      invited_by: 'Ada Nordström',
      created_at: ago(300),
      expires_at: ago(-9780),
    },
  ],
  apps: [
    {
      id: 'gr_0192a',
      name: 'Claude',
      client_id: 'https://claude.ai/oauth/mcp-oauth-client-metadata',
      user_id: 'usr_0192a',
      user_name: 'Ada Nordström',
      user_email: 'ada@nordhavn.example',
      resource: 'https://mcp.example.com/t/nordhavn/harbour/mcp',
      scopes: ['mcp', 'offline_access'],
      created_at: ago(8000),
      last_used_at: ago(12),
      repeated_elsewhere_at: ago(300),
      expires_at: ago(-90000),
      refreshes: 41,
    },
    {
      id: 'gr_0192b',
      name: 'Harbour Pilot',
      client_id: 'dyn_4f9c',
      user_id: 'usr_0192b',
      user_name: 'Jonas Lind',
      user_email: 'jonas@nordhavn.example',
      resource: 'https://mcp.example.com/t/nordhavn/mcp',
      scopes: ['mcp'],
      created_at: ago(200),
      last_used_at: null,
      repeated_elsewhere_at: null,
      expires_at: ago(-120000),
      refreshes: 0,
    },
  ],
  sources,
  tools,
  servers,
  calls,
  tool,
  preview: {
    title: 'Harbour Office API',
    version: '2.4.0',
    spec_version: '3.1.0',
    description: 'Ports and berths.',
    servers: [
      { url: 'https://api.harbour.example/v2' },
      { url: 'https://staging.harbour.example/v2', description: 'Staging' },
    ],
    base_url: 'https://api.harbour.example/v2',
    security: [
      {
        kind: 'api_key',
        name: 'X-Api-Key',
        location: 'header',
        description: 'Ask the harbour office for a key.',
      },
    ],
    operations,
    problems: [
      {
        severity: 'warning',
        message: 'The parameter "datum" has no schema.',
        pointer: '/paths/~1ports~1{code}~1tides/get/parameters/1',
        line: 214,
        column: 9,
      },
    ],
    digest: 'sha256:4c1f9e0b77aa2d31',
  },
  difference: {
    digest: 'sha256:77',
    added: [operation('GET', '/pilots', 'list_pilots', 'List pilots', ['pilots'])],
    removed: [{ key: 'GET /v1/positions', tool_name: 'positions_v1', used_by_servers: ['harbour'] }],
    changed: [
      {
        key: 'POST /berths',
        tool_name: 'book_berth',
        changes: ['the field "cargo" is required now', 'the description changed'],
      },
    ],
    unchanged: 6,
    problems: [],
  },
  hours: () => {
    const by_hour = shape.map((calls_, i) => ({
      hour: new Date(Date.now() - (23 - i) * 3_600_000).toISOString(),
      calls: empty ? 0 : calls_,
      errors: empty ? 0 : Math.floor(calls_ / 13),
      rejected: empty ? 0 : Math.floor(calls_ / 17),
    }));
    return {
      total: by_hour.reduce((sum, one) => sum + one.calls, 0),
      errors: by_hour.reduce((sum, one) => sum + one.errors, 0),
      rejected: by_hour.reduce((sum, one) => sum + one.rejected, 0),
      by_hour,
    };
  },
  audit: empty
    ? []
    : [
        {
          id: 'aud_1',
          at: ago(90),
          actor: { kind: 'user', user_id: 'usr_0192a' },
          action: 'server.tools_changed',
          target_kind: 'server',
          target_id: 'srv_0192a',
          outcome: 'ok',
          detail: { added: 1, removed: 0 },
        },
        {
          id: 'aud_2',
          at: ago(300),
          actor: { kind: 'user', user_id: 'usr_0192b' },
          action: 'source.reimported',
          target_kind: 'source',
          target_id: 'src_0192a',
          outcome: 'ok',
          detail: { changed: 2 },
        },
        {
          id: 'aud_3',
          at: ago(2000),
          actor: { kind: 'user', user_id: 'usr_0192b' },
          action: 'workspace.renamed',
          target_kind: 'workspace',
          target_id: 'ten_0192a',
          outcome: 'refused',
          detail: {},
        },
      ],
  connection: (server) => {
    const json = (value) => JSON.stringify(value, null, 2);
    return {
      url: server.url,
      clients: [
        {
          client: 'claude',
          label: 'Claude',
          steps: [
            'Open Settings, then Connectors, then “Add custom connector”.',
            'Paste the URL and choose Add.',
            'Sign in to Portolan in the window that opens, and allow access.',
          ],
          snippet: server.url,
          language: 'text',
        },
        {
          client: 'claude_code',
          label: 'Claude Code',
          steps: ['Run this in a terminal.', 'In Claude Code, run /mcp and sign in.'],
          snippet: `claude mcp add --transport http ${server.slug} ${server.url}`,
          language: 'shell',
        },
        {
          client: 'chatgpt',
          label: 'ChatGPT',
          steps: [
            'Open Settings, then Apps & Connectors, and switch developer mode on.',
            'Create a connector with this URL and OAuth.',
          ],
          snippet: server.url,
          language: 'text',
        },
        {
          client: 'cursor',
          label: 'Cursor',
          steps: ['Add this to ~/.cursor/mcp.json, or use the button.'],
          snippet: json({ mcpServers: { [server.slug]: { url: server.url } } }),
          language: 'json',
          deep_link: 'cursor://anysphere.cursor-deeplink/mcp/install',
        },
        {
          client: 'vscode',
          label: 'VS Code',
          steps: ['Add this to .vscode/mcp.json, or use the button.'],
          snippet: json({ servers: { [server.slug]: { type: 'http', url: server.url } } }),
          language: 'json',
          deep_link: 'vscode:mcp/install',
        },
      ],
    };
  },
  run: (one, args) => {
    const missing = (one.input_schema.required ?? []).filter((name) => args[name] === undefined);
    const url = `https://api.harbour.example/v2${one.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(args[name] ?? ''))}`;
    if (missing.length > 0) {
      return {
        ok: false,
        is_error: true,
        duration_ms: 1,
        content: [],
        errors: missing.map((name) => ({ path: `/${name}`, message: 'is required' })),
      };
    }
    if (one.name === 'get_ship_photo') {
      const svg = Buffer.from(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 160"><rect width="300" height="160" fill="#8fbfd9"/><path d="M60 100h180l-30 30H90z" fill="#0b2a40"/><path d="M140 95V30l60 65z" fill="#fff"/></svg>',
      ).toString('base64');
      return {
        ok: true,
        is_error: false,
        status: 200,
        duration_ms: 182,
        ...exchange(one, url, args, 'image/svg+xml'),
        content: [{ type: 'image', data: svg, mimeType: 'image/svg+xml' }],
      };
    }
    const structured = {
      items: [
        { code: 'DKCPH', name: 'Copenhagen', depth_m: 11.5, open: true },
        { code: 'SEGOT', name: 'Gothenburg', depth_m: 19, open: true },
      ],
      next: null,
    };
    return {
      ok: true,
      is_error: false,
      status: 200,
      duration_ms: 84,
      ...exchange(one, url, args, 'application/json', JSON.stringify(structured)),
      content: [{ type: 'text', text: JSON.stringify(structured) }],
      structured_content: structured,
    };
  },
};
