import { type CallOptions, type ClientSettings, Connection, clientInfo, tasksExtension } from './connection';
import type { AskMethod, Era, Level, Members, RpcMessage } from './messages';
import { McpError } from './messages';
import { mirrored } from './mirrored';
import type { Header } from './timeline';

const prefix = 'io.modelcontextprotocol/';

/** Methods whose header `Mcp-Name` repeats a parameter. */
const names: Record<string, string> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

const mostRounds = 20;

/** Requests of 2026-07-28: each carries what it needs, a question comes back as a result, and a lost connection cancels. */
export class StatelessConnection extends Connection {
  readonly era: Era = '2026-07-28';
  #listening: AbortController | undefined;
  readonly #closing = new AbortController();

  async open() {
    const result = await this.request('server/discover', {});
    const meta = (result._meta ?? {}) as Members;
    const card = (meta[`${prefix}serverInfo`] ?? result.serverInfo ?? {}) as Members;
    this.server = {
      name: String(card.name ?? ''),
      version: String(card.version ?? ''),
      title: card.title as string | undefined,
      instructions: result.instructions as string | undefined,
      capabilities: (result.capabilities ?? {}) as Members,
    };
    await this.subscribe([]);
  }

  async request(method: string, params: Members, options: CallOptions = {}): Promise<Members> {
    const signals = [this.#closing.signal, ...(options.signal ? [options.signal] : [])];
    const signal = AbortSignal.any(signals);
    let round = params;
    for (let turn = 0; turn < mostRounds; turn += 1) {
      const result = await this.#once(method, round, options, signal);
      if (result.resultType !== 'input_required') return result;
      const inputResponses = await this.answers((result.inputRequests ?? {}) as Members, signal);
      const { requestState } = result;
      round = { ...params, inputResponses, ...(requestState !== undefined && { requestState }) };
    }
    throw new McpError({ code: -1, message: 'The server asked too often.' });
  }

  /** The person's answers to the questions of a result or of a task. */
  async answers(requests: Members, signal: AbortSignal): Promise<Members> {
    const inputResponses: Members = {};
    for (const [key, request] of Object.entries(requests)) {
      const { method, params } = request as { method: AskMethod; params?: Members };
      inputResponses[key] = await this.listener.ask(method, params ?? {}, signal);
    }
    return inputResponses;
  }

  async #once(method: string, params: Members, options: CallOptions, signal: AbortSignal): Promise<Members> {
    const id = this.nextId();
    const [own, forget] = this.withProgress(id, params, options);
    const message = this.#message(id, method, own);
    let answer: RpcMessage | undefined;
    try {
      const { status, text } = await this.wire.send({
        label: method,
        method: 'POST',
        message,
        headers: this.#headers(method, params, options.inputSchema),
        signal,
        onMessage: (one) => {
          if (one.method === undefined) answer = one;
          else this.notified(one);
        },
      });
      if (!answer) throw Connection.missing(status, text);
      return Connection.settled(answer);
    } finally {
      forget();
    }
  }

  #message(id: number, method: string, params: Members): RpcMessage {
    const { elicitation, sampling, tasks, level } = this.settings;
    const meta = {
      ...(params._meta as Members | undefined),
      [`${prefix}protocolVersion`]: this.era,
      [`${prefix}clientInfo`]: clientInfo,
      [`${prefix}clientCapabilities`]: {
        roots: {},
        ...(elicitation && { elicitation: { form: {}, url: {} } }),
        ...(sampling && { sampling: {} }),
        ...(tasks && { extensions: { [tasksExtension]: {} } }),
      },
      ...(level && { [`${prefix}logLevel`]: level }),
    };
    return { jsonrpc: '2.0', id, method, params: { ...params, _meta: meta } };
  }

  #headers(method: string, params: Members, schema: Members | undefined): Header[] {
    const name = names[method] && params[names[method]];
    return [
      ['MCP-Protocol-Version', this.era],
      ['Mcp-Method', method],
      ...(typeof name === 'string' ? [['Mcp-Name', mirrored(name)] as Header] : []),
      ...(method === 'tools/call' && schema ? argumentHeaders(schema, params.arguments) : []),
    ];
  }

  async setLevel(level: Level | null) {
    this.settings = { ...this.settings, level };
  }

  async setRoots(roots: ClientSettings['roots']) {
    this.settings = { ...this.settings, roots };
  }

  /** One stream for all subscriptions: a change of them opens it anew. */
  async subscribe(uris: string[]) {
    this.#listening?.abort();
    const listening = new AbortController();
    this.#listening = listening;
    const id = this.nextId();
    const method = 'subscriptions/listen';
    const params = {
      notifications: {
        toolsListChanged: true,
        promptsListChanged: true,
        resourcesListChanged: true,
        ...(uris.length > 0 && { resourceSubscriptions: uris }),
      },
    };
    const signal = AbortSignal.any([this.#closing.signal, listening.signal]);
    await new Promise<void>((resolve, reject) => {
      this.wire
        .send({
          label: method,
          method: 'POST',
          message: this.#message(id, method, params),
          headers: this.#headers(method, params, undefined),
          signal,
          onMessage: (one) => {
            if (one.method === undefined) return;
            // The acknowledgement comes first.
            resolve();
            this.notified(one);
          },
        })
        .then(({ status, text }) => {
          if (status >= 400) return reject(Connection.missing(status, text));
          resolve();
          if (!signal.aborted) this.listener.ended('The server ended the subscription. Subscribe again.');
        })
        .catch((cause) => {
          if (signal.aborted) resolve();
          else reject(cause);
        });
    });
  }

  async close() {
    this.#closing.abort();
  }
}

/** The headers of annotated arguments (`x-mcp-header`), also of nested ones. */
function argumentHeaders(schema: Members, value: unknown): Header[] {
  if (typeof value !== 'object' || value === null) return [];
  const properties = (schema.properties ?? {}) as Record<string, Members>;
  return Object.entries(properties).flatMap(([name, property]) => {
    const given = (value as Members)[name];
    const header = property['x-mcp-header'];
    if (typeof header === 'string' && ['string', 'number', 'boolean'].includes(typeof given)) {
      return [[`Mcp-Param-${header}`, mirrored(String(given))] as Header];
    }
    return property.properties ? argumentHeaders(property, given) : [];
  });
}
