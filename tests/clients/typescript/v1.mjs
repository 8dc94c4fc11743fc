// The official TypeScript SDK 1.x, from the 401 to a refreshed token.
import { UnauthorizedError, auth } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Provider, check, countingFetch, finish, listenForCallback, useOffers, useTools } from "./person.mjs";

const url = new URL(process.env.PORTOLAN_MCP_URL);
const callback = await listenForCallback();
const authProvider = new Provider(callback.redirectUrl, "TypeScript SDK 1.x");

const first = new StreamableHTTPClientTransport(url, { authProvider, fetch: countingFetch });
let refused;
try {
  await new Client({ name: "typescript-v1", version: "1.0.0" }).connect(first);
} catch (error) {
  refused = error;
}
check(refused instanceof UnauthorizedError, "without a token the server sends the client to authorization", String(refused));

const answer = await callback.arrival;
check(answer.get("state") === authProvider.expectedState, "the state comes back unchanged", answer.get("state"));
check(answer.get("iss") === url.origin, "the issuer is named in the callback", answer.get("iss"));
await first.finishAuth(answer.get("code"));
check(authProvider.tokens()?.token_type === "Bearer", "the code buys a token", authProvider.tokens()?.token_type);

const client = new Client({ name: "typescript-v1", version: "1.0.0" });
const transport = new StreamableHTTPClientTransport(url, { authProvider, fetch: countingFetch });
await client.connect(transport);
check(client.getServerVersion()?.name !== undefined, "the session opens", client.getServerVersion());
check(transport.sessionId !== undefined, "the session has an id", transport.sessionId);
await client.ping();
await useTools(client);
await useOffers(client);

const old = authProvider.tokens();
const outcome = await auth(authProvider, { serverUrl: url });
check(outcome === "AUTHORIZED", "the refresh token works without a person", outcome);
check(authProvider.tokens().access_token !== old.access_token, "a refresh gives another access token", "the same");
await client.ping();
await transport.terminateSession();
await client.close();
callback.close();
finish();
