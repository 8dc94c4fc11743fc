// The official TypeScript SDK 2.x: once with version negotiation (2026-07-28), once the legacy way.
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { Provider, check, countingFetch, finish, listenForCallback, useOffers, useTools } from "./person.mjs";

const url = new URL(process.env.PORTOLAN_MCP_URL);
const callback = await listenForCallback();
const authProvider = new Provider(callback.redirectUrl, "TypeScript SDK 2.x");
const about = { name: "typescript-v2", version: "2.0.0" };

const first = new StreamableHTTPClientTransport(url, { authProvider, fetch: countingFetch });
let refused;
try {
  await new Client(about, { versionNegotiation: { mode: "auto" } }).connect(first);
} catch (error) {
  refused = error;
}
check(refused instanceof UnauthorizedError, "without a token the server sends the client to authorization", String(refused));

const answer = await callback.arrival;
check(answer.get("state") === authProvider.expectedState, "the state comes back unchanged", answer.get("state"));
await first.finishAuth(answer);
check(authProvider.tokens()?.token_type === "Bearer", "the code buys a token", authProvider.tokens()?.token_type);

for (const [mode, version] of [["auto", "2026-07-28"], ["legacy", "2025-11-25"]]) {
  const client = new Client(about, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(url, { authProvider, fetch: countingFetch }));
  check(client.getNegotiatedProtocolVersion() === version, `${mode} negotiation speaks ${version}`, client.getNegotiatedProtocolVersion());
  await useTools(client);
  await useOffers(client);
  await client.close();
}
callback.close();
finish();
