// Load by an official TypeScript SDK, 1.x or 2.x, for the chaos test: calls with progress, one
// after the other, through the SDK's own reconnect logic. It writes the SDK's results as JSON
// lines; a closed stdin ends it. load.mjs 1|2, and PORTOLAN_MCP_URL, PORTOLAN_TOKEN_FILE,
// PORTOLAN_LOAD_NAME, PORTOLAN_LOAD_WORKERS.
import { readFileSync } from "node:fs";

const [generation] = process.argv.slice(2);
const { Client, StreamableHTTPClientTransport } =
  generation === "1"
    ? {
        ...(await import("@modelcontextprotocol/sdk/client/index.js")),
        ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
      }
    : await import("@modelcontextprotocol/client");
const url = new URL(process.env.PORTOLAN_MCP_URL);
const { PORTOLAN_TOKEN_FILE: tokenFile, PORTOLAN_LOAD_NAME: name, PORTOLAN_LOAD_WORKERS: workers } = process.env;

let isOver = false;
process.stdin.on("end", () => (isOver = true)).resume();
// Errors that the SDK drops are printed for people.
process.on("unhandledRejection", (error) => console.error("dropped", String(error)));

const write = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const pick = (from) => from[Math.floor(Math.random() * from.length)];
const pause = (millis) => new Promise((done) => setTimeout(done, millis));

/** One client of the SDK, and what is seen of its one call at a time. */
class Watched {
  call;
  owners = new Map();
  /** The id that the SDK has just reported. If an event with data has it, the event follows at
   * once. */
  told;

  constructor() {
    this.transport = new StreamableHTTPClientTransport(url, { fetch: (...request) => this.fetch(...request) });
  }

  async connect(options) {
    const client = new Client({ name, version: "1.0.0" }, options);
    await client.connect(this.transport);
    this.client = client;
    const deliver = this.transport.onmessage;
    this.transport.onmessage = (message, ...rest) => {
      this.see(message);
      deliver.call(this.transport, message, ...rest);
    };
    client.onerror = (error) => {
      const call = this.call;
      if (call && call.failed >= 2 && /Maximum reconnection attempts/.test(String(error))) {
        call.gaveUp = String(error);
        call.abort.abort();
      }
      // Without a session there is nothing to resume. 2.x reports that here, and lets the caller
      // wait for its own timeout.
      if (call && !this.transport.sessionId && /SSE stream disconnected/.test(String(error))) {
        call.broke = String(error);
        call.abort.abort();
      }
    };
  }

  /** Adds the token, and notes how requests for a call went. */
  async fetch(input, init) {
    const headers = new Headers(init?.headers);
    headers.set("authorization", `Bearer ${readFileSync(tokenFile, "utf8").trim()}`);
    const resumes = this.owners.get(headers.get("last-event-id"));
    const posts = typeof init?.body === "string" && init.body.includes('"tools/call"') ? this.call : undefined;
    let status = 0;
    try {
      const response = await fetch(input, { ...init, headers });
      status = response.status;
      return response;
    } finally {
      if (resumes) {
        write({ resumed: { call: resumes.work.call, status } });
        resumes.failed = status >= 200 && status < 300 ? 0 : resumes.failed + 1;
      }
      if (posts) posts.status = status;
    }
  }

  /** An id on the stream of `call`. Without a message it is that of a priming event. */
  tell(call, id) {
    // Events of answers, and the first ones of resumed streams, as against those of the session's own stream.
    const kind = "QU".includes(id[0]) ? "answer" : id[0];
    call.kind ??= kind;
    if (kind !== call.kind) {
      // After a resumed stream that broke before its first event the SDK has forgotten the id, and gets the session's own stream.
      call.gaveUp = "lost its place";
      call.abort.abort();
      return;
    }
    this.owners.set(id, call);
    const told = { call, id };
    this.told = told;
    queueMicrotask(() => {
      if (this.told === told) {
        this.told = undefined;
        write({ event: { call: call.work.call, id, message: null } });
      }
    });
  }

  see(message) {
    const told = this.told;
    this.told = undefined;
    const isAnswer = message.id !== undefined && message.method === undefined;
    if (isAnswer && this.call?.request === message.id) this.call.answer = message;
    // The call whose stream brought it; where streams have no ids, the one call there is.
    const call = told?.call ?? (message.method === undefined || message.method === "notifications/progress" ? this.call : undefined);
    const isStreamed = told !== undefined || message.method !== undefined;
    if (call && isStreamed) write({ event: { call: call.work.call, id: told?.id ?? null, message: this.named(message, call) } });
  }

  /** The SDK chooses progress tokens by itself: the call's name takes the place of the right one. */
  named(message, call) {
    if (message.method !== "notifications/progress") return message;
    const token = message.params.progressToken;
    return { ...message, params: { ...message.params, progressToken: token === call.token ? call.work.call : `token ${token}` } };
  }

  async run(work, session) {
    const isSafe = Math.random() < 0.33;
    const call = { work, failed: 0, abort: new AbortController() };
    this.call = call;
    const deadline = work.millis + 25_000;
    write({ began: { work, session, safe: isSafe, deadline } });
    const send = this.transport.send;
    this.transport.send = (message, options) => {
      if (message.method === "tools/call") {
        call.request = message.id;
        call.token = message.params?._meta?.progressToken;
      }
      return send.call(this.transport, message, options);
    };
    let error;
    const timeout = deadline + 60_000;
    const options = {
      onprogress: () => {},
      onresumptiontoken: (id) => this.tell(call, id),
      signal: call.abort.signal,
      timeout,
      maxTotalTimeout: timeout,
    };
    try {
      const request = { name: isSafe ? "look_up" : "do_work", arguments: work };
      await (generation === "1" ? this.client.callTool(request, undefined, options) : this.client.callTool(request, options));
    } catch (thrown) {
      error = thrown;
    }
    this.transport.send = send;
    const end = { call: work.call };
    if (call.answer) end.message = call.answer;
    else if (call.gaveUp || (call.failed >= 2 && call.kind)) end.gave_up = call.gaveUp ?? String(error);
    else if (call.status >= 300) end.http = call.status;
    else if (call.broke) end.refused = call.broke;
    else if (/timed out/i.test(String(error))) end.hung = null;
    else end.refused = String(error);
    write({ ended: end });
    return call.answer !== undefined;
  }
}

async function worker(number) {
  for (let count = 1, calls = 0; !isOver; count += 1) {
    const watched = new Watched();
    // 2.x speaks both eras.
    const mode = generation === "2" && count % 2 === 0 ? "auto" : "legacy";
    try {
      await watched.connect(generation === "2" ? { versionNegotiation: { mode } } : undefined);
    } catch {
      await pause(1000);
      continue;
    }
    const era = watched.transport.sessionId ? "" : "m";
    const session = era ? null : `${name} ${number} session ${count}`;
    let works = true;
    for (let left = 4 + Math.floor(Math.random() * 8); left > 0 && works && !isOver; left -= 1) {
      calls += 1;
      const work = {
        call: `${name}${era}-${number}-${calls}`,
        millis: pick([0, 10, 200, 1500, 2500, 5000, 8000]),
        size: pick([0, 0, 1000, 100000]),
      };
      works = await watched.run(work, session);
      await pause(Math.random() * 400);
    }
    watched.call = undefined;
    await watched.client.close().catch(() => {});
  }
}

await Promise.all(Array.from({ length: Number(workers) }, (_, number) => worker(number)));
process.exit(0);
