// oauth4webapi 3: the strictest reader of answers among the libraries.
import * as oauth from "oauth4webapi";
import { check, finish, given, listenForCallback, signingKey, works } from "./person.mjs";

const issuer = new URL(given.issuer);
const insecure = { [oauth.allowInsecureRequests]: true };
const as = await oauth.processDiscoveryResponse(
  issuer,
  await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...insecure }),
);
check(as.authorization_response_iss_parameter_supported === true, "AS-8: iss is advertised");
check(as.introspection_endpoint !== undefined, "E8: introspection is advertised");

const callback = await listenForCallback();
const client = await oauth.processDynamicClientRegistrationResponse(
  await oauth.dynamicClientRegistrationRequest(
    as,
    {
      client_name: "oauth4webapi",
      redirect_uris: [callback.redirectUri],
      grant_types: ["authorization_code", "refresh_token"],
      token_endpoint_auth_method: "none",
    },
    insecure,
  ),
);
const verifier = oauth.generateRandomCodeVerifier();
const state = oauth.generateRandomState();
const url = new URL(as.authorization_endpoint);
for (const [name, value] of Object.entries({
  client_id: client.client_id,
  response_type: "code",
  redirect_uri: callback.redirectUri,
  scope: "mcp",
  resource: given.mcp_url,
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
  state,
})) {
  url.searchParams.set(name, value);
}
console.log(`open ${url}`);
const parameters = oauth.validateAuthResponse(as, client, await callback.arrival, state);
const none = oauth.None();
const tokens = await oauth.processAuthorizationCodeResponse(
  as,
  client,
  await oauth.authorizationCodeGrantRequest(as, client, none, parameters, callback.redirectUri, verifier, insecure),
);
check(await works(tokens.access_token), "the token opens the server");
const refreshed = await oauth.processRefreshTokenResponse(
  as,
  client,
  await oauth.refreshTokenGrantRequest(as, client, none, tokens.refresh_token, insecure),
);
check(await works(refreshed.access_token), "the refreshed token opens the server");

const byKey = { client_id: given.by_key.id };
const proof = oauth.PrivateKeyJwt({ key: await signingKey(), kid: given.by_key.kid });
const credentials = new URLSearchParams({ resource: given.mcp_url });
const granted = await oauth.processClientCredentialsResponse(
  as,
  byKey,
  await oauth.clientCredentialsGrantRequest(as, byKey, proof, credentials, insecure),
);
check(await works(granted.access_token), "C13: proof by key");
const seen = await oauth.processIntrospectionResponse(
  as,
  byKey,
  await oauth.introspectionRequest(as, byKey, proof, refreshed.access_token, insecure),
);
check(seen.active === true, "R8: the token of the person is good", seen);

// Codes once, and the family with it (AUTH-T6).
const again = await oauth.authorizationCodeGrantRequest(
  as,
  client,
  none,
  parameters,
  callback.redirectUri,
  verifier,
  insecure,
);
try {
  await oauth.processAuthorizationCodeResponse(as, client, again);
  check(false, "a code is good once");
} catch (error) {
  check(error.error === "invalid_grant", "T6: invalid_grant for a used code", String(error));
}
callback.close();
finish();
