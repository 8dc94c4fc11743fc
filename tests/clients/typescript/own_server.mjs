// The official TypeScript SDKs, both generations, at the MCP server over a workspace: an agent finds the calls that
// were made there. Both check results against the schemas of the tools.
// PORTOLAN_URL is the origin, PORTOLAN_TOKEN an access token of the workspace harbour, PORTOLAN_TOOL the called tool.
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as Transport1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from "@modelcontextprotocol/client";
import { check, finish } from "./person.mjs";

const { PORTOLAN_URL, PORTOLAN_TOKEN, PORTOLAN_TOOL: tool } = process.env;
const url = new URL("/api/v1/workspaces/harbour/mcp", PORTOLAN_URL);
const requestInit = { headers: { authorization: `Bearer ${PORTOLAN_TOKEN}` } };
const about = { name: "own-server", version: "1.0.0" };

/** The result of a tool, as soon as `holds` is true of it. */
async function eventually(client, name, args, holds) {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const { structuredContent: found } = await client.callTool({ name, arguments: args });
    if (holds(found) || Date.now() > deadline) return found;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

async function look(client, generation) {
  const { tools } = await client.listTools();
  const names = tools.map(({ name }) => name).join(" ");
  check(names === "get_call get_configuration get_insights list_error_causes search_calls", `${generation} lists every tool`, names);
  check(tools.every(({ annotations }) => annotations.readOnlyHint === true), `${generation} sees tools that only read`, tools);

  const calls = await eventually(client, "search_calls", { tool }, ({ items }) => items.length >= 2);
  check(calls.items.length >= 2, `${generation} finds the calls of the workspace`, calls);
  const failed = await eventually(client, "search_calls", { outcome: "error" }, ({ items }) => items.length > 0);
  check(failed.items.length > 0, `${generation} finds the call that failed`, failed);

  const { structuredContent: call } = await client.callTool({ name: "get_call", arguments: { id: calls.items[0].id } });
  check(call.tool_name === tool && call.timing.took_us > 0 && call.arguments === undefined, `${generation} looks at one of them`, call);

  const insights = await eventually(client, "get_insights", { period: "1h" }, ({ total }) => total.calls >= 3);
  const row = insights.tools.find(({ name }) => name === tool);
  check(row?.calls >= 2 && row.p95_ms > 0, `${generation} reads its insights`, insights.tools);
  const { structuredContent: causes } = await client.callTool({ name: "list_error_causes", arguments: { period: "1h" } });
  check(causes.items.length > 0, `${generation} reads causes of errors`, causes);

  const file = await client.callTool({ name: "get_configuration", arguments: {} });
  check(file.content[0].text.includes("format: portolan/v1"), `${generation} reads the configuration`, file.content[0].text);
  check(file.structuredContent.servers[0].slug === "fixture", `${generation} finds its server there`, file.structuredContent);

  const wrong = await client.callTool({ name: "search_calls", arguments: { outcome: "bad" } });
  check(wrong.isError === true && wrong.content[0].text.includes("outcome"), `${generation} learns of a wrong argument`, wrong);
  await client.close();
}

const first = new Client1(about);
await first.connect(new Transport1(url, { requestInit }));
check(first.transport.sessionId === undefined, "1.x gets no session", first.transport.sessionId);
await look(first, "1.x");

const second = new Client2(about, { versionNegotiation: { mode: "auto" } });
await second.connect(new Transport2(url, { requestInit }));
await look(second, "2.x");
finish();
