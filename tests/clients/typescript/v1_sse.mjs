// The official TypeScript SDK 1.x on HTTP+SSE, the transport of 2024-11-05, from the 401 to a call.
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { Provider, check, countingFetch, finish, listenForCallback, useTools } from "./person.mjs";

const url = new URL(process.env.PORTOLAN_MCP_URL);
const callback = await listenForCallback();
const authProvider = new Provider(callback.redirectUrl, "TypeScript SDK 1.x, two endpoints");

const first = new SSEClientTransport(url, { authProvider, fetch: countingFetch });
let refused;
try {
  await new Client({ name: "typescript-v1-sse", version: "1.0.0" }).connect(first);
} catch (error) {
  refused = error;
}
check(refused instanceof UnauthorizedError, "without a token the server sends the client to authorization", String(refused));

const answer = await callback.arrival;
await first.finishAuth(answer.get("code"));
check(authProvider.tokens()?.token_type === "Bearer", "the code buys a token", authProvider.tokens()?.token_type);

const client = new Client({ name: "typescript-v1-sse", version: "1.0.0" });
await client.connect(new SSEClientTransport(url, { authProvider, fetch: countingFetch }));
check(client.getServerVersion()?.name !== undefined, "the connection is initialized", client.getServerVersion());
await client.ping();
await useTools(client);
await client.close();
callback.close();
finish();
