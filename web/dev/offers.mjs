// Prompts and resources of the workspace that is looked at.
const at = '2026-01-01T08:00:00Z';

export const prompts = [
  {
    id: 'prm_0192a',
    name: 'berth_request',
    title: 'Ask for a berth',
    description: 'A polite request to the harbour master.',
    arguments: [
      {
        name: 'port',
        title: 'Port',
        required: true,
        values: [{ value: 'Nordhavn' }, { value: 'Sundby', when: { country: 'Denmark' } }],
      },
      { name: 'country', required: false, values: [{ value: 'Denmark' }, { value: 'Sweden' }] },
    ],
    messages: [
      {
        role: 'user',
        content: { type: 'text', text: 'Write to the harbour master of {{port}}, {{country}}.' },
      },
      {
        role: 'user',
        content: {
          type: 'resource',
          uri: 'rules://{{port}}',
          mime_type: 'text/plain',
          text: 'Rules of {{port}}',
        },
      },
    ],
    enabled: true,
    state: 'active',
    used_by_servers: ['harbour'],
    updated_at: at,
  },
];

export const resources = [
  {
    id: 'rsc_0192a',
    shape: 'template',
    uri: 'ports://{id}/sheet',
    name: 'port-sheet',
    title: 'Sheet of a port',
    description: '',
    mime_type: 'application/json',
    variables: [{ name: 'id', required: true, values: [{ value: 'NORD' }] }],
    body: 'text',
    size: 40,
    text: '{"id": "{{id}}"}',
    enabled: true,
    state: 'active',
    used_by_servers: ['harbour'],
    updated_at: at,
  },
  {
    id: 'rsc_0192b',
    shape: 'resource',
    uri: 'guide://welcome',
    name: 'welcome',
    title: '',
    description: '',
    mime_type: 'text/markdown',
    variables: [],
    body: 'http',
    source_name: 'Harbour API',
    http_path: '/guide',
    enabled: false,
    state: 'active',
    used_by_servers: [],
    updated_at: at,
  },
];

/** The part of them that a server offers. */
export const offered = {
  prompts: [
    {
      prompt_id: 'prm_0192a',
      published_name: 'berth_request',
      name: 'berth_request',
      title: 'Ask for a berth',
      enabled: true,
      state: 'active',
    },
  ],
  resources: [
    {
      resource_id: 'rsc_0192a',
      published_uri: 'ports://{id}/sheet',
      shape: 'template',
      name: 'port-sheet',
      title: '',
      enabled: true,
      state: 'active',
    },
  ],
};

/** The routes of the API, as `api.mjs` has them. */
export const routes = [
  ['GET', '/workspaces/:ws/prompts', () => ({ items: prompts })],
  ['GET', '/workspaces/:ws/prompts/:id', (p) => prompts.find((one) => one.id === p.id)],
  ['GET', '/workspaces/:ws/resources', () => ({ items: resources })],
  ['GET', '/workspaces/:ws/resources/:id', (p) => resources.find((one) => one.id === p.id)],
];
