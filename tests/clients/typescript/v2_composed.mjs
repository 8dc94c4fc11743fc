// The official TypeScript SDK 2.x before a server that is composed of others: once with version negotiation (2026-07-28), once the legacy way.
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { answer, capabilities, countingFetch, walk } from "./composed.mjs";
import { Provider, check, finish, listenForCallback } from "./person.mjs";

const url = new URL(process.env.PORTOLAN_MCP_URL);
const callback = await listenForCallback();
const authProvider = new Provider(callback.redirectUrl, "TypeScript SDK 2.x, composed");
const about = { name: "typescript-v2", version: "2.0.0" };

const first = new StreamableHTTPClientTransport(url, { authProvider, fetch: countingFetch });
const refused = await new Client(about, { versionNegotiation: { mode: "auto" } }).connect(first).catch((error) => error);
check(refused instanceof UnauthorizedError, "without a token the server sends the client to authorization", String(refused));
await first.finishAuth(await callback.arrival);

for (const [mode, version] of [["auto", "2026-07-28"], ["legacy", "2025-11-25"]]) {
  const client = new Client(about, { capabilities, versionNegotiation: { mode } });
  for (const method of ["elicitation/create", "sampling/createMessage", "roots/list"]) {
    client.setRequestHandler(method, ({ params }) => answer(method, params));
  }
  await client.connect(new StreamableHTTPClientTransport(url, { authProvider, fetch: countingFetch }));
  check(client.getNegotiatedProtocolVersion() === version, `${mode} negotiation speaks ${version}`, client.getNegotiatedProtocolVersion());
  await walk(client, (from, params, onprogress) => from.callTool(params, onprogress && { onprogress }));
  await client.close();
}
callback.close();
finish();
