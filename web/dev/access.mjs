// Who and what may use the workspace: keys, accounts, clients, attempts to connect, rules of signing in.
const ago = (minutes) => new Date(Date.now() - minutes * 60_000).toISOString();

const key = {
  id: 'key_0192a',
  name: 'CI of the harbour desk',
  hint: 'mcpk_AbCdEf',
  holder: 'usr_0192a',
  holder_name: 'Ada Nordström',
  networks: ['192.0.2.0/24'],
  created_at: ago(9000),
  expires_at: ago(-90_000),
  last_used_at: ago(4),
};
const secret = { id: 'sec_1', hint: 'cs_Zz19Qa', created_at: ago(800), last_used_at: ago(60) };
const account = {
  id: 'svc_01939d6c1e7b7c6e8f3a2b1c0d9e25a1',
  name: 'Nightly berth report',
  auth: 'client_secret',
  enabled: true,
  secrets: [secret],
  created_by: 'Ada Nordström',
  created_at: ago(20_000),
  last_used_at: ago(500),
};
const seen = (id, name, more) => ({
  id,
  name,
  client_id: `https://${id}.example/oauth/client.json`,
  people: 2,
  admitted: true,
  askers: [],
  imitates: false,
  last_used_at: ago(30),
  ...more,
});

export const routes = [
  ['GET', '/workspaces/:ws/api-keys', () => ({ items: [key] })],
  [
    'POST',
    '/workspaces/:ws/api-keys',
    () => ({ key, secret: 'mcpk_AbCdEf0123456789abcdefghijklmnopqrstuvwxyz' }),
  ],
  [
    'GET',
    '/workspaces/:ws/service-accounts',
    () => ({ items: [account, { ...account, id: 'svc_2', name: 'Old report', enabled: false }] }),
  ],
  [
    'GET',
    '/workspaces/:ws/clients',
    () => ({
      rule: 'approval',
      effects: [
        { rule: 'any', clients: 0, apps: 0 },
        { rule: 'verified', clients: 1, apps: 2 },
        { rule: 'list', clients: 1, apps: 2 },
        { rule: 'approval', clients: 1, apps: 2 },
      ],
      clients: [
        seen('claude', 'Claude', { verified: 'Anthropic', decision: 'allowed' }),
        seen('deckhand', 'A client with a name that is much longer than what people usually give to one', {
          admitted: false,
          askers: [
            {
              user_id: 'usr_0192b',
              user_name: 'Jonas Lind',
              user_email: 'jonas@nordhavn.example',
              asked_at: ago(90),
            },
          ],
        }),
      ],
    }),
  ],
  [
    'GET',
    '/workspaces/:ws/registered-clients',
    () => ({
      items: [
        {
          id: 'rcl_1',
          client_id: 'mcpc_01939d6c1e7b7c6e8f3a2b1c0d9e8f7a',
          name: 'Harbour desk',
          redirect_uris: ['https://desk.nordhavn.example/oauth/callback'],
          proof: 'client_secret',
          secrets: [secret],
          enabled: true,
          stopped: false,
          apps: 3,
          created_at: ago(9000),
        },
      ],
    }),
  ],
  [
    'GET',
    '/workspaces/:ws/connects',
    () => ({
      items: [
        {
          id: '7',
          state: 'refused',
          reached: 'authorize',
          began_at: ago(3),
          ended_at: ago(3),
          client_name: 'Deckhand',
          server: 'harbour',
          known: [],
          steps: [
            {
              at: ago(3),
              step: 'authorize',
              outcome: 'refused',
              rule: 'A3',
              rule_says: 'The redirect URI must equal a registered one exactly.',
              fault: 'redirect_uri does not match',
              request_id: '0123456789abcdef01234567',
              sent: { redirect_uri: 'https://other.example/cb', state: true },
            },
          ],
        },
      ],
    }),
  ],
  [
    'GET',
    '/workspaces/:ws/security',
    () => ({
      members: 5,
      members_with_factor: 3,
      members_with_passkey: 1,
      passkeys_possible: false,
      second_factor: 'off',
    }),
  ],
  [
    'GET',
    '/workspaces/:ws/single-sign-on',
    () => ({
      may_enforce: false,
      provider: {
        name: 'Nordhavn',
        issuer: 'https://id.nordhavn.example',
        client_id: 'portolan',
        callback_url: 'https://mcp.example.com/login/company/nordhavn/callback',
        enforced: false,
        has_secret: true,
        turned_off: false,
      },
      domains: [
        {
          id: 'dom_1',
          domain: 'nordhavn.example',
          record_name: '_portolan.nordhavn.example',
          record_text: 'portolan-verify=0123456789abcdef0123456789abcdef',
          verified_at: null,
          checked_at: null,
          missing_since: null,
        },
      ],
    }),
  ],
];
