// openid-client 6: the whole life of a grant, and both kinds of service accounts.
import * as client from "openid-client";
import { check, finish, given, listenForCallback, signingKey, works } from "./person.mjs";

const issuer = new URL(given.issuer);
const plain = { execute: [client.allowInsecureRequests], algorithm: "oauth2" };

// A public client that registers itself, PKCE, state, iss, refresh, revocation.
const callback = await listenForCallback();
const config = await client.dynamicClientRegistration(
  issuer,
  {
    client_name: "openid-client",
    redirect_uris: [callback.redirectUri],
    grant_types: ["authorization_code", "refresh_token"],
    token_endpoint_auth_method: "none",
  },
  client.None(),
  plain,
);
const verifier = client.randomPKCECodeVerifier();
const state = client.randomState();
const url = client.buildAuthorizationUrl(config, {
  redirect_uri: callback.redirectUri,
  scope: "mcp offline_access",
  resource: given.mcp_url,
  code_challenge: await client.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
  state,
});
console.log(`open ${url}`);
const arrived = await callback.arrival;
check(arrived.searchParams.get("iss") === given.issuer, "A7: iss is the issuer", arrived.search);
let tokens = await client.authorizationCodeGrant(config, arrived, { pkceCodeVerifier: verifier, expectedState: state });
check(await works(tokens.access_token), "the token opens the server");
const first = tokens.refresh_token;
tokens = await client.refreshTokenGrant(config, first);
check(tokens.refresh_token !== first, "K8: the refresh token of a public client is another one");
check(await works(tokens.access_token), "the refreshed token opens the server");

// A service account by secret, in both ways.
for (const [name, method] of [
  ["client_secret_basic", client.ClientSecretBasic],
  ["client_secret_post", client.ClientSecretPost],
]) {
  const account = await client.discovery(issuer, given.by_secret.id, undefined, method(given.by_secret.secret), plain);
  const granted = await client.clientCredentialsGrant(account, { scope: "mcp", resource: given.mcp_url });
  check(granted.refresh_token === undefined, `AX-3: no refresh token by ${name}`);
  check(granted.expires_in === 900, "K2: 15 minutes", granted.expires_in);
  check(await works(granted.access_token), `the account's token opens the server, by ${name}`);
  if (name === "client_secret_basic") {
    const seen = await client.tokenIntrospection(account, tokens.access_token);
    check(seen.active === true, "R8: the token of the person is good", seen);
  }
}

// A service account by key: the library makes a new assertion each time.
const byKey = await client.discovery(
  issuer,
  given.by_key.id,
  undefined,
  client.PrivateKeyJwt({ key: await signingKey(), kid: given.by_key.kid }),
  plain,
);
for (let turn = 0; turn < 2; turn += 1) {
  const granted = await client.clientCredentialsGrant(byKey, { resource: given.mcp_url });
  check(await works(granted.access_token), "C13: proof by key");
}

await client.tokenRevocation(config, tokens.refresh_token);
const seen = await client.tokenIntrospection(byKey, tokens.access_token);
check(seen.active === false, "R4: a revoked refresh token takes its grant along", seen);
try {
  await client.refreshTokenGrant(config, tokens.refresh_token);
  check(false, "a revoked token refreshes nothing");
} catch (error) {
  check(error.error === "invalid_grant", "invalid_grant for a revoked token", String(error));
}
callback.close();
finish();
