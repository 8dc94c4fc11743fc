// The official TypeScript SDK 1.x before a server that is composed of others.
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { answer, capabilities, countingFetch, walk } from "./composed.mjs";
import { Provider, check, finish, listenForCallback } from "./person.mjs";

const url = new URL(process.env.PORTOLAN_MCP_URL);
const callback = await listenForCallback();
const authProvider = new Provider(callback.redirectUrl, "TypeScript SDK 1.x, composed");
const about = { name: "typescript-v1", version: "1.0.0" };

const first = new StreamableHTTPClientTransport(url, { authProvider, fetch: countingFetch });
const refused = await new Client(about).connect(first).catch((error) => error);
check(refused instanceof UnauthorizedError, "without a token the server sends the client to authorization", String(refused));
await first.finishAuth((await callback.arrival).get("code"));

const client = new Client(about, { capabilities });
for (const [schema, method] of [
  [ElicitRequestSchema, "elicitation/create"],
  [CreateMessageRequestSchema, "sampling/createMessage"],
  [ListRootsRequestSchema, "roots/list"],
]) {
  client.setRequestHandler(schema, ({ params }) => answer(method, params));
}
const transport = new StreamableHTTPClientTransport(url, { authProvider, fetch: countingFetch });
await client.connect(transport);
await walk(client, (from, params, onprogress) => from.callTool(params, undefined, onprogress && { onprogress }));
await transport.terminateSession();
await client.close();
callback.close();
finish();
