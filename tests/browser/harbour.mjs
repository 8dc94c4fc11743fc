// Shared by the tests of single pages: the sign-in, requests as the console sends them, an HTTP API behind the tools
// of a published server, and the official SDK as its client.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { base, check, finish, launch, openContext, watch } from "./chromium.mjs";

const { EMAIL, PASSWORD } = process.env;
/** The credential that the API accepts. */
const apiToken = "harbour-api-token";

export const button = (name, on) => on.getByRole("button", { name, exact: true });

/** A window in which the person is signed in, and the end of the program. */
export async function open() {
  const browser = await launch();
  const context = await openContext(browser);
  const faults = watch(context);
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  await page.goto(`${base}/login`);
  await page.getByLabel("E-mail").fill(EMAIL);
  await page.getByLabel("Password").fill(PASSWORD);
  await button("Sign in", page).click();
  await page.waitForURL((url) => url.pathname !== "/login");
  const end = async () => {
    check(faults.length === 0, "no page broke its content policy, threw, or loaded from elsewhere", faults);
    await browser.close();
    finish();
  };
  return { context, page, end };
}

/** A request of the console: its status and body. */
export const request = (page, method, path, body) =>
  page.evaluate(
    async ([method, path, body]) => {
      const headers = body === undefined ? {} : { "content-type": "application/json" };
      const answer = await fetch(`/api/v1${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
      const text = await answer.text();
      return { status: answer.status, body: text === "" ? undefined : JSON.parse(text) };
    },
    [method, path, body],
  );

/** A request of the console that must succeed: its body. */
export async function ask(page, method, path, body) {
  const answer = await request(page, method, path, body);
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** The API of a harbour. `api.refuses` makes it refuse its token, as after a revocation. */
export async function startApi(port) {
  const api = { refuses: false, url: `http://127.0.0.1:${port}` };
  const server = createServer((request, response) => {
    const answer = (status, body) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    request.resume();
    if (api.refuses || request.headers.authorization !== `Bearer ${apiToken}`) return answer(401, { error: "token revoked" });
    const { pathname } = new URL(request.url, api.url);
    if (pathname === "/ports") return answer(200, { ports: ["DKCPH", "NLRTM", "SGSIN"] });
    if (pathname === "/ports/DKCPH") return answer(200, { id: "DKCPH", name: "København" });
    // Late enough to be found by its duration.
    if (pathname === "/tides") return setTimeout(() => answer(200, { high: "06:12" }), 700);
    return answer(404, { error: "no such port" });
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return api;
}

const object = (properties) => ({ 200: { description: "Done", content: { "application/json": { schema: { type: "object", properties } } } } });

const document = (url) => ({
  openapi: "3.1.0",
  info: { title: "Harbour", version: "1.0.0" },
  servers: [{ url }],
  components: { securitySchemes: { token: { type: "http", scheme: "bearer" } } },
  security: [{ token: [] }],
  paths: {
    "/ports": { get: { operationId: "list_ports", summary: "Lists the ports that ships can call at", responses: object({ ports: { type: "array" } }) } },
    "/ports/{id}": {
      get: {
        operationId: "get_port",
        summary: "Finds a port by its UN/LOCODE",
        parameters: [{ name: "id", in: "path", required: true, schema: { type: "string", minLength: 5, maxLength: 5 } }],
        responses: object({ id: { type: "string" }, name: { type: "string" } }),
      },
    },
    "/tides": { get: { operationId: "get_tides", summary: "Computes the next high tide", responses: object({ high: { type: "string" } }) } },
  },
});

/** Imports the API into the workspace and publishes its tools: the URL of the server and an API key for it. */
export async function publish(page, api) {
  const ws = "/workspaces/harbour";
  const source = await ask(page, "POST", `${ws}/sources`, {
    kind: "openapi", name: "Harbour API", base_url: api.url, input: { kind: "text", text: JSON.stringify(document(api.url)) },
  });
  await ask(page, "PUT", `${ws}/sources/${source.id}/credential`, { kind: "bearer", token: apiToken });
  const tools = await ask(page, "GET", `${ws}/sources/${source.id}/tools`);
  const server = await ask(page, "POST", `${ws}/servers`, { name: "Berths", slug: "berths", tool_ids: tools.items.map(({ id }) => id) });
  const { url } = await ask(page, "POST", `${ws}/servers/${server.id}/publish`, {});
  const { secret } = await ask(page, "POST", `${ws}/api-keys`, { name: "Berth planner" });
  return { source: source.id, url, key: secret };
}

/** The SDK of the clients' tests, connected as `name`. */
export async function connect({ url, key }, name) {
  const resolve = createRequire(new URL("../clients/typescript/package.json", import.meta.url)).resolve;
  const { Client, StreamableHTTPClientTransport } = await import(pathToFileURL(resolve("@modelcontextprotocol/client")));
  const client = new Client({ name, version: "2.1.0" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization: `Bearer ${key}` } } }));
  return client;
}
