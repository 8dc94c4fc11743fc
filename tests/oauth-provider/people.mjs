// A provider of accounts made with oidc-provider: a third-party server with which people sign in to
// Portolan. Each visitor is the person that /control names, and allows everything.
//
//   node people.mjs
//
// /control (POST) sets: client (the redirect addresses), who (sub, email, email_verified, name),
// tamper (the change to ID tokens on their way: payload, none, stranger, or empty), deny. /seen
// returns the counts of requests.
import { generateKeyPairSync, sign } from 'node:crypto';
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const rules = { tamper: '', deny: false, who: { sub: 'somebody', email: 'somebody@example.com', email_verified: true, name: 'Some Body' } };
const seen = { codes: 0, sign_ins: 0 };

const server = createServer();
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
const { port } = server.address();
const origin = `http://127.0.0.1:${port}`;
const { privateKey: stranger } = generateKeyPairSync('rsa', { modulusLength: 2048 });

const provider = new Provider(origin, {
  clients: [],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  features: { devInteractions: { enabled: false } },
  pkce: { required: () => true },
  findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ ...rules.who, sub: id }) }),
  interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
  cookies: { keys: ['a key of the tests'] },
});
provider.on('grant.success', () => seen.codes++);
provider.use(async (ctx, next) => {
  await next();
  if (ctx.path === '/token' && ctx.body?.id_token && rules.tamper) {
    ctx.body.id_token = tampered(ctx.body.id_token);
  }
});
const callback = provider.callback();

/** An ID token as an attacker in between would change it. */
function tampered(token) {
  const [header, payload, signature] = token.split('.');
  const encode = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = JSON.parse(Buffer.from(payload, 'base64url'));
  if (rules.tamper === 'payload') return `${header}.${encode({ ...claims, sub: 'ann' })}.${signature}`;
  if (rules.tamper === 'none') return `${encode({ alg: 'none' })}.${payload}.`;
  const signed = `${encode({ alg: 'RS256' })}.${payload}`;
  return `${signed}.${sign('RSA-SHA256', Buffer.from(signed), stranger).toString('base64url')}`;
}

/** The person at a prompt signs in and allows it. */
async function interact(req, res) {
  const { prompt, params, session, grantId: known } = await provider.interactionDetails(req, res);
  if (rules.deny) {
    await provider.interactionFinished(req, res, { error: 'access_denied' }, { mergeWithLastSubmission: false });
    return;
  }
  if (prompt.name === 'login') {
    seen.sign_ins++;
    await provider.interactionFinished(req, res, { login: { accountId: rules.who.sub } });
    return;
  }
  const grant = known
    ? await provider.Grant.find(known)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  if (prompt.details.missingOIDCScope) grant.addOIDCScope(prompt.details.missingOIDCScope.join(' '));
  if (prompt.details.missingOIDCClaims) grant.addOIDCClaims(prompt.details.missingOIDCClaims);
  const grantId = await grant.save();
  await provider.interactionFinished(req, res, { consent: { grantId } }, { mergeWithLastSubmission: true });
}

function answer(res, status, body) {
  res.writeHead(status, { 'content-type': 'application/json' });
  res.end(JSON.stringify(body));
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
      const { client, ...others } = JSON.parse(await read(req));
      Object.assign(rules, others);
      if (client) {
        await provider.Client.adapter.upsert('portolan', {
          client_id: 'portolan',
          client_secret: 'a secret of 32 characters or more than that',
          redirect_uris: client,
          grant_types: ['authorization_code'],
          response_types: ['code'],
          application_type: 'native',
          token_endpoint_auth_method: 'client_secret_basic',
        });
      }
      return answer(res, 200, rules);
    }
    if (pathname === '/seen') return answer(res, 200, seen);
    if (pathname.startsWith('/interaction/')) return await interact(req, res);
    return callback(req, res);
  } catch (error) {
    console.error(error);
    if (!res.headersSent) answer(res, 500, { error: String(error) });
  }
});
console.log(`listening ${port}`);
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
