// An authorization server made with oidc-provider, and before an MCP server a guard that requires
// its tokens (RFC 9728), as in front of third-party servers. Both are on one port. Each visitor of
// the authorization server is `somebody` and allows everything, unless /control says otherwise.
//
//   node serve.mjs <address of the MCP server>
//
// /control (POST) sets: ttl (seconds of access tokens), deny (people say no), scope (required by
// the guard), refuse (the guard refuses all tokens that it has accepted so far), forget (registered
// clients are unknown). /seen returns the counts of requests.
import { createServer, request as send } from 'node:http';
import Provider from 'oidc-provider';

const upstream = new URL(process.argv[2]);
const rules = { ttl: 3600, deny: false, scope: '' };
const seen = { registrations: 0, codes: 0, refreshes: 0, by_client: 0, revocations: 0, revoked_grants: 0, refused_refreshes: 0, resources: [] };
let taken = new Set();
const refused = new Set();
let registered = [];

const server = createServer();
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const { port } = server.address();
const origin = `http://127.0.0.1:${port}`;
const resource = `${origin}${upstream.pathname}`;

const provider = new Provider(origin, {
  clients: [
    {
      client_id: 'entered',
      client_secret: 'entered-secret-of-32-characters-or-more',
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    },
  ],
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    revocation: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => false,
      getResourceServerInfo: (_ctx, indicator) => {
        seen.resources.push(indicator);
        return { scope: 'read write', audience: indicator, accessTokenTTL: rules.ttl, accessTokenFormat: 'opaque' };
      },
    },
  },
  scopes: ['openid', 'offline_access'],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed('refresh_token'),
  findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
  cookies: { keys: ['a key of the tests'] },
});
provider.on('registration_create.success', (_ctx, client) => {
  seen.registrations++;
  registered.push(client.clientId);
});
provider.on('grant.revoked', () => seen.revoked_grants++);
provider.on('grant.success', (ctx) => {
  const kind = ctx.oidc.params.grant_type;
  if (kind === 'refresh_token') seen.refreshes++;
  else if (kind === 'client_credentials') seen.by_client++;
  else seen.codes++;
});
provider.on('grant.error', (ctx) => {
  if (ctx.oidc?.params?.grant_type === 'refresh_token') seen.refused_refreshes++;
});
const callback = provider.callback();

/** The person at a prompt signs in and allows it. */
async function interact(req, res) {
  const details = await provider.interactionDetails(req, res);
  const { prompt, params } = details;
  if (rules.deny) {
    await provider.interactionFinished(req, res, { error: 'access_denied' }, { mergeWithLastSubmission: false });
    return;
  }
  if (prompt.name === 'login') {
    await provider.interactionFinished(req, res, { login: { accountId: 'somebody' } });
    return;
  }
  const grant = details.grantId
    ? await provider.Grant.find(details.grantId)
    : new provider.Grant({ accountId: details.session.accountId, clientId: params.client_id });
  const wanted = prompt.details;
  if (wanted.missingOIDCScope) grant.addOIDCScope(wanted.missingOIDCScope.join(' '));
  for (const [indicator, scopes] of Object.entries(wanted.missingResourceScopes ?? {})) {
    grant.addResourceScope(indicator, scopes.join(' '));
  }
  const grantId = await grant.save();
  await provider.interactionFinished(req, res, { consent: { grantId } }, { mergeWithLastSubmission: true });
}

function answer(res, status, body, headers = {}) {
  res.writeHead(status, { 'content-type': 'application/json', ...headers });
  res.end(JSON.stringify(body));
}

/** Lets through who has a token for this resource. */
async function guard(req, res) {
  const value = /^Bearer (.+)$/.exec(req.headers.authorization ?? '')?.[1];
  const token =
    value &&
    ((await provider.AccessToken.find(value)) ?? (await provider.ClientCredentials.find(value)));
  const metadata = `resource_metadata="${origin}/.well-known/oauth-protected-resource${upstream.pathname}"`;
  if (!token || token.isExpired || refused.has(value) || ![token.aud].flat().includes(resource)) {
    const scope = 'scope="read"';
    return answer(res, 401, {}, { 'www-authenticate': `Bearer ${metadata}, ${scope}` });
  }
  if (rules.scope && !(token.scope ?? '').split(' ').includes(rules.scope)) {
    const wanted = `Bearer error="insufficient_scope", scope="${rules.scope}", ${metadata}`;
    return answer(res, 403, {}, { 'www-authenticate': wanted });
  }
  taken.add(value);
  const { host, ...headers } = req.headers;
  const onward = send(new URL(req.url, upstream), { method: req.method, headers }, (inner) => {
    res.writeHead(inner.statusCode, inner.headers);
    inner.pipe(res);
  });
  onward.on('error', () => res.destroy());
  res.on('close', () => onward.destroy());
  req.pipe(onward);
}

async function read(req) {
  let text = '';
  for await (const piece of req) text += piece;
  return text;
}

server.on('request', async (req, res) => {
  try {
    const { pathname } = new URL(req.url, origin);
    if (pathname === '/control') {
      const { refuse, forget, ...others } = JSON.parse(await read(req));
      Object.assign(rules, others);
      if (forget) {
        for (const id of registered) await provider.Client.adapter.destroy(id);
        registered = [];
      }
      if (refuse) {
        for (const value of taken) refused.add(value);
        taken = new Set();
      }
      return answer(res, 200, rules);
    }
    if (pathname === '/seen') return answer(res, 200, seen);
    if (pathname.startsWith('/.well-known/oauth-protected-resource')) {
      return answer(res, 200, { resource, authorization_servers: [origin], scopes_supported: ['read'] });
    }
    if (pathname === upstream.pathname) return await guard(req, res);
    if (pathname.startsWith('/interaction/')) return await interact(req, res);
    if (pathname === '/token/revocation') seen.revocations++;
    return callback(req, res);
  } catch (error) {
    console.error(error);
    if (!res.headersSent) answer(res, 500, { error: String(error) });
  }
});
console.log(`listening ${port}`);
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
