// An authorization server made with oidc-provider, an HTTP API at another origin that requires its
// tokens, and a third, foreign origin that records its requests. Each visitor of the authorization
// server is the person that /control names, and allows everything. The API knows each person by
// their account there.
//
//   node api.mjs
//
// /control (POST, at the authorization server) sets: client (the redirect addresses; `app` has a
// secret, `open` has none), who, ttl (seconds of access tokens), deny, scope (required by the API),
// challenge (of the API's 401), refuse (the API refuses all tokens that it has accepted so far),
// revoke (a person's grants are over). /seen returns the counts of requests, and the addresses of
// the other two.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const rules = { who: 'ann', ttl: 3600, deny: false, scope: '', challenge: 'Bearer error="invalid_token"' };
const seen = { codes: 0, refreshes: 0, refused_refreshes: 0, revocations: 0, calls: 0, refused: 0, notes: 0, strays: 0, authorizations: [] };
const notes = new Map();
const grants = new Map();
let taken = new Set();
const refused = new Set();

async function listening() {
  const server = createServer();
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  return [server, `http://127.0.0.1:${server.address().port}`];
}

const [server, origin] = await listening();
const [api, apiOrigin] = await listening();
const [elsewhere, elsewhereOrigin] = await listening();

const provider = new Provider(origin, {
  clients: [],
  features: { devInteractions: { enabled: false }, revocation: { enabled: true } },
  scopes: ['openid', 'offline_access', 'read', 'write'],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed('refresh_token'),
  ttl: { AccessToken: () => rules.ttl },
  findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
  cookies: { keys: ['a key of the tests'] },
});
provider.on('grant.success', (ctx) => {
  if (ctx.oidc.params.grant_type === 'refresh_token') seen.refreshes++;
  else seen.codes++;
});
provider.on('grant.error', (ctx) => {
  if (ctx.oidc?.params?.grant_type === 'refresh_token') seen.refused_refreshes++;
});
const callback = provider.callback();

/** Makes the clients known, with the addresses that they send people back to. */
async function know(addresses) {
  const common = {
    redirect_uris: addresses,
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    application_type: 'native',
  };
  const secret = { client_secret: 'app-secret-of-32-characters-or-more-than-that' };
  const app = { ...common, ...secret, client_id: 'app', token_endpoint_auth_method: 'client_secret_post' };
  const open = { ...common, client_id: 'open', token_endpoint_auth_method: 'none' };
  for (const client of [app, open]) await provider.Client.adapter.upsert(client.client_id, client);
}

/** The person at a prompt signs in and allows it. */
async function interact(req, res) {
  const { prompt, params, session, grantId: known } = await provider.interactionDetails(req, res);
  if (rules.deny) {
    await provider.interactionFinished(req, res, { error: 'access_denied' }, { mergeWithLastSubmission: false });
    return;
  }
  if (prompt.name === 'login') {
    await provider.interactionFinished(req, res, { login: { accountId: rules.who } });
    return;
  }
  const grant = known
    ? await provider.Grant.find(known)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  if (prompt.details.missingOIDCScope) grant.addOIDCScope(prompt.details.missingOIDCScope.join(' '));
  const grantId = await grant.save();
  grants.set(session.accountId, [...(grants.get(session.accountId) ?? []), grantId]);
  await provider.interactionFinished(req, res, { consent: { grantId } }, { mergeWithLastSubmission: true });
}

/** Ends what a person allowed. */
async function revoke(person) {
  for (const grantId of grants.get(person) ?? []) {
    await provider.RefreshToken.revokeByGrantId(grantId);
    await provider.AccessToken.revokeByGrantId(grantId);
  }
  grants.delete(person);
}

function answer(res, status, body, headers = {}) {
  res.writeHead(status, { 'content-type': 'application/json', ...headers });
  res.end(JSON.stringify(body));
}

async function read(req) {
  let text = '';
  for await (const piece of req) text += piece;
  return text;
}

function unauthorized(res) {
  seen.refused++;
  return answer(res, 401, { error: 'no' }, rules.challenge ? { 'www-authenticate': rules.challenge } : {});
}

/** The API: a good token identifies a person, who sees their own data. */
async function serve(req, res) {
  seen.calls++;
  const body = await read(req);
  seen.authorizations.push(req.headers.authorization ?? '');
  const value = /^Bearer (.+)$/.exec(req.headers.authorization ?? '')?.[1];
  const token = value && (await provider.AccessToken.find(value));
  if (!token || token.isExpired || refused.has(value)) return unauthorized(res);
  if (rules.scope && !(token.scope ?? '').split(' ').includes(rules.scope)) {
    const wanted = `Bearer error="insufficient_scope", scope="${rules.scope}"`;
    return answer(res, 403, { error: 'more' }, { 'www-authenticate': wanted });
  }
  taken.add(value);
  const who = token.accountId;
  const { pathname } = new URL(req.url, apiOrigin);
  if (pathname === '/me') return answer(res, 200, { who, notes: notes.get(who) ?? [] });
  if (pathname === '/notes') {
    seen.notes++;
    notes.set(who, [...(notes.get(who) ?? []), JSON.parse(body).text]);
    return answer(res, 201, { who, count: notes.get(who).length });
  }
  if (pathname === '/away') return answer(res, 302, {}, { location: `${elsewhereOrigin}/stolen` });
  // Says 401 to what is asked, not to who asks.
  if (pathname === '/refuses') return answer(res, 401, { error: 'wrong answer' });
  return answer(res, 404, {});
}

/** Answers requests, and prints their errors. */
const handling = (handle) => async (req, res) => {
  try {
    await handle(req, res);
  } catch (error) {
    console.error(error);
    if (!res.headersSent) answer(res, 500, { error: String(error) });
  }
};

server.on('request', handling(async (req, res) => {
  const { pathname } = new URL(req.url, origin);
  if (pathname === '/control') {
    const { client, refuse, revoke: person, ...others } = JSON.parse(await read(req));
    Object.assign(rules, others);
    if (client) await know(client);
    if (person) await revoke(person);
    if (refuse) {
      for (const value of taken) refused.add(value);
      taken = new Set();
    }
    return answer(res, 200, rules);
  }
  if (pathname === '/seen') return answer(res, 200, { ...seen, api: apiOrigin, elsewhere: elsewhereOrigin });
  if (pathname.startsWith('/interaction/')) return await interact(req, res);
  if (pathname === '/token/revocation') seen.revocations++;
  return callback(req, res);
}));
api.on('request', handling(serve));
elsewhere.on('request', (req, res) => {
  seen.strays++;
  answer(res, 200, { came: req.url });
});
console.log(`listening ${server.address().port}`);
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
