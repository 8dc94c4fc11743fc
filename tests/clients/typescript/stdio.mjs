// Both generations of the official TypeScript SDK over stdio, through `portolan connect`.
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as Stdio1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Client as Client2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio2 } from "@modelcontextprotocol/client/stdio";
import { check, countListing, finish, useOffers, useTools } from "./person.mjs";

const { PORTOLAN_BINARY: command, PORTOLAN_MCP_URL: url, PORTOLAN_API_KEY, HOME } = process.env;

/** The transport of either SDK, which counts what it sends. */
function connected(Stdio) {
  const env = { PORTOLAN_API_KEY, HOME };
  const transport = new Stdio({ command, args: ["connect", url], env, stderr: "inherit" });
  const { send } = transport;
  transport.send = (message, ...more) => {
    countListing(JSON.stringify(message));
    return send.call(transport, message, ...more);
  };
  return transport;
}

const first = new Client1({ name: "typescript-v1", version: "1.0.0" });
await first.connect(connected(Stdio1));
check(first.getServerVersion()?.name !== undefined, "SDK 1.x: the session opens", first.getServerVersion());
await first.ping();
await useTools(first);
await useOffers(first);
await first.close();

for (const [mode, version] of [["auto", "2026-07-28"], ["legacy", "2025-11-25"]]) {
  const client = new Client2({ name: "typescript-v2", version: "2.0.0" }, { versionNegotiation: { mode } });
  await client.connect(connected(Stdio2));
  check(client.getNegotiatedProtocolVersion() === version, `SDK 2.x: ${mode} speaks ${version}`, client.getNegotiatedProtocolVersion());
  await useTools(client);
  await useOffers(client);
  await client.close();
}
finish();
