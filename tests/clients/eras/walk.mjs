// The official TypeScript SDK of one revision before servers of every revision, feature by feature.
// Each line of the output is an outcome: feature, revision of the server, and `works`, `refused` or what
// went wrong. PORTOLAN_SERVERS has the servers: revision, address, headers, or the program of a stdio server.
const { PORTOLAN_ERA: era, PORTOLAN_WAY: way } = process.env;
const servers = JSON.parse(process.env.PORTOLAN_SERVERS);
const isModern = era === "2026-07-28";
const sdk = `sdk-${era}`;
const CHANGED = "notifications/tools/list_changed";
const UPDATED = "notifications/resources/updated";
const PATIENCE = 30_000;

const { Client } = isModern ? await import(sdk) : await import(`${sdk}/client/index.js`);
const types = isModern ? {} : await import(`${sdk}/types.js`);
const capabilities = { sampling: {}, roots: {} };
if (era >= "2025-06-18") capabilities.elicitation = {};
if (era >= "2025-11-25") capabilities.elicitation = { form: {}, url: {} };

const schemas = {
  "elicitation/create": types.ElicitRequestSchema,
  "sampling/createMessage": types.CreateMessageRequestSchema,
  "roots/list": types.ListRootsRequestSchema,
  "notifications/message": types.LoggingMessageNotificationSchema,
  [CHANGED]: types.ToolListChangedNotificationSchema,
  [UPDATED]: types.ResourceUpdatedNotificationSchema,
};

/** The transport of the revision: HTTP+SSE, Streamable HTTP, or the lines of a program. */
async function transport({ url, headers, command, args, env }) {
  if (way === "stdio") {
    const { StdioClientTransport } = await import(isModern ? `${sdk}/stdio` : `${sdk}/client/stdio.js`);
    return new StdioClientTransport({ command, args, env, stderr: "inherit" });
  }
  const requestInit = { headers };
  if (era === "2024-11-05") {
    const { SSEClientTransport } = await import(`${sdk}/client/sse.js`);
    const open = (address, init) => fetch(address, { ...init, headers: { ...init?.headers, ...headers } });
    return new SSEClientTransport(new URL(url.replace(/mcp$/, "sse")), { requestInit, eventSourceInit: { fetch: open } });
  }
  const { StreamableHTTPClientTransport } = isModern ? await import(sdk) : await import(`${sdk}/client/streamableHttp.js`);
  return new StreamableHTTPClientTransport(new URL(url), { requestInit });
}

function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`no ${what} in time`)), PATIENCE); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function ensure(condition, found) {
  if (!condition) throw new Error(JSON.stringify(found) ?? String(found));
}

const answers = {
  "elicitation/create": ({ requestedSchema, mode }) => mode === "url"
    ? { action: "accept" }
    : { action: "accept", content: requestedSchema.properties.many ? { many: ["harbours"] } : { name: "Ada", color: "blue" } },
  "sampling/createMessage": () => ({ role: "assistant", model: "m", content: { type: "text", text: "Hello" } }),
  "roots/list": () => ({ roots: [{ uri: "file:///a" }] }),
};

/** A client, the questions of the server to it, and a wait for notifications. */
async function opened(server) {
  const options = isModern ? { capabilities, versionNegotiation: { mode: "auto" } } : { capabilities };
  const client = new Client({ name: sdk, version: "1.0.0" }, options);
  const asked = [];
  const waiting = [];
  for (const [method, answer] of Object.entries(answers)) {
    const known = isModern ? method : schemas[method];
    if (!known || (method === "elicitation/create" && !capabilities.elicitation)) continue;
    client.setRequestHandler(known, ({ params }) => {
      asked.push(method);
      return answer(params ?? {});
    });
  }
  for (const method of ["notifications/message", CHANGED, UPDATED]) {
    client.setNotificationHandler(isModern ? method : schemas[method], (notice) => {
      for (const one of waiting.filter((one) => one.method === method)) one.resolve(notice.params);
    });
  }
  const told = (method) => within(new Promise((resolve) => waiting.push({ method, resolve })), method);
  await client.connect(await transport(server));
  const call = (name, args = {}, options = {}) => isModern
    ? client.callTool({ name, arguments: args }, options)
    : client.callTool({ name, arguments: args }, undefined, options);
  return { client, asked, told, call };
}

/** A tool that asks: its answer arrives, or the result is a refusal that the person can read. */
async function question({ asked, call }, tool, method, answer) {
  asked.length = 0;
  const result = await call(tool);
  const said = result.content[0].text;
  if (asked.length === 0) {
    ensure(!said.startsWith("answered ") && said.length > 0, result);
    return "refused";
  }
  ensure(asked.length === 1 && asked[0] === method, asked);
  ensure(said.includes(answer), result);
  return "works";
}

const features = {
  open: async ({ client }) => {
    const version = isModern ? client.getNegotiatedProtocolVersion() : era;
    ensure(version === era && client.getServerVersion()?.name, version);
  },
  list: async ({ client }) => {
    const { tools } = await client.listTools();
    ensure(tools.some((tool) => tool.name === "rich"), tools);
  },
  call: async ({ call }) => {
    const result = await call("plain");
    ensure(result.content[0].text === "plain", result);
  },
  results: async ({ call }) => {
    const result = await call("rich");
    ensure(result.content[0].text === "rich", result);
  },
  progress: async ({ call }) => {
    const steps = [];
    const key = `progress ${era} ${way}`;
    // The SDKs lose progress that they read together with the answer: the answer comes after it here.
    const onprogress = ({ progress }) => {
      steps.push(progress);
      if (steps.length === 3) call("release", { key }).catch(() => {});
    };
    const result = await call("progress", { key }, { onprogress });
    ensure(result.content[0].text === "done" && JSON.stringify(steps) === "[1,2,3]", steps);
  },
  elicitation: (has) => question(has, "elicit", "elicitation/create", `"Ada"`),
  sampling: (has) => question(has, "sample", "sampling/createMessage", `"Hello"`),
  roots: (has) => question(has, "roots", "roots/list", "file:///a"),
  resources: async ({ client }) => {
    const { contents } = await client.readResource({ uri: "sea://tide" });
    ensure(contents[0].text === "High at noon.", contents);
    const missing = await client.readResource({ uri: "sea://depth/none" }).catch((error) => error);
    ensure(missing.code === (isModern ? -32602 : -32002), missing);
  },
  prompts: async ({ client }) => {
    const { prompts } = await client.listPrompts();
    ensure(prompts[0].name === "describe", prompts);
    const { messages } = await client.getPrompt({ name: "describe", arguments: { what: "the pier" } });
    ensure(messages[0].content.text === "Describe the pier", messages);
  },
  completion: async ({ client }) => {
    const ref = { type: "ref/prompt", name: "describe" };
    const { completion } = await client.complete({ ref, argument: { name: "what", value: "nor" } });
    ensure(completion.values[0] === "north", completion);
  },
  subscription: async (has) => {
    const { client, told, call } = has;
    if (isModern) has.listening = await client.listen({ toolsListChanged: true, resourceSubscriptions: ["sea://tide"] });
    else await client.subscribeResource({ uri: "sea://tide" });
    const updated = told(UPDATED);
    await call("touch");
    ensure((await updated).uri === "sea://tide", "another resource");
  },
  "list-changed": async ({ told, call }) => {
    const changed = told(CHANGED);
    await call("change");
    await changed;
  },
  cancel: async ({ call }) => {
    const abort = new AbortController();
    const key = `official ${era} ${way}`;
    const options = { signal: abort.signal, onprogress: () => abort.abort("not wanted") };
    const ended = await within(call("wait", { key }, options), "end").then(() => "answered", () => "cancelled");
    ensure(ended === "cancelled", ended);
  },
};

for (const server of servers) {
  const line = (feature, outcome) => console.log(`${feature}\t${server.revision}\t${outcome}`);
  let has;
  try {
    has = await within(opened(server), "connection");
  } catch (error) {
    line("open", `failed: ${error.message}`);
    continue;
  }
  for (const [feature, probe] of Object.entries(features)) {
    if (feature === "elicitation" && server.revision < "2025-06-18") continue;
    try {
      line(feature, (await within(Promise.resolve(probe(has)), feature)) ?? "works");
    } catch (error) {
      line(feature, `failed: ${String(error.message ?? error).replaceAll(/\s+/g, " ").slice(0, 300)}`);
    }
  }
  await has.listening?.close().catch(() => {});
  await has.client.close().catch(() => {});
}
console.log("done");
process.exit(0);
