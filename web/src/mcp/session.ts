import { type CallOptions, type ClientSettings, Connection, clientInfo } from './connection';
import type { AskMethod, Era, Level, Members, RpcMessage } from './messages';
import { McpError, TransportFault } from './messages';
import type { Header } from './timeline';

interface Waiting {
  resolve: (message: RpcMessage) => void;
}

const asks: readonly string[] = ['elicitation/create', 'sampling/createMessage', 'roots/list'];

/** A session of 2025-11-25 over Streamable HTTP: streams are resumed, questions are answered by POST. */
export class SessionConnection extends Connection {
  readonly era: Era = '2025-11-25';
  #session: string | undefined;
  #version: string | undefined;
  #uris: string[] = [];
  readonly #waiting = new Map<string, Waiting>();
  readonly #questions = new Map<string, AbortController>();
  readonly #closing = new AbortController();

  override get session() {
    return this.#session;
  }

  async open() {
    const id = this.nextId();
    const { elicitation, sampling, tasks } = this.settings;
    const message: RpcMessage = {
      jsonrpc: '2.0',
      id,
      method: 'initialize',
      params: {
        protocolVersion: this.era,
        clientInfo,
        capabilities: {
          roots: { listChanged: true },
          ...(elicitation && { elicitation: { form: {}, url: {} } }),
          ...(sampling && { sampling: {} }),
          ...(tasks && { tasks: { list: {}, cancel: {} } }),
        },
      },
    };
    let answer: RpcMessage | undefined;
    const { status, headers, text } = await this.wire.send({
      label: 'initialize',
      method: 'POST',
      message,
      onMessage: (one) => {
        answer = one;
      },
    });
    if (!answer) throw Connection.missing(status, text);
    const result = Connection.settled(answer);
    this.#session = headers.get('mcp-session-id') ?? undefined;
    this.#version = String(result.protocolVersion);
    const card = (result.serverInfo ?? {}) as Members;
    this.server = {
      name: String(card.name ?? ''),
      version: String(card.version ?? ''),
      title: card.title as string | undefined,
      instructions: result.instructions as string | undefined,
      capabilities: (result.capabilities ?? {}) as Members,
    };
    await this.#tell({ jsonrpc: '2.0', method: 'notifications/initialized' });
    void this.#hear().catch(() => undefined);
    if (this.settings.level) await this.setLevel(this.settings.level);
  }

  async request(method: string, params: Members, options: CallOptions = {}): Promise<Members> {
    const id = this.nextId();
    const [own, forget] = this.withProgress(id, params, options);
    const task = options.taskTtl === undefined ? {} : { task: { ttl: options.taskTtl } };
    const message: RpcMessage = { jsonrpc: '2.0', id, method, params: { ...own, ...task } };
    const { signal } = options;
    const cancel = () => {
      const reason = 'The person cancelled the request.';
      void this.#tell({
        jsonrpc: '2.0',
        method: 'notifications/cancelled',
        params: { requestId: id, reason },
      }).catch(() => undefined);
    };
    try {
      return await new Promise<Members>((resolve, reject) => {
        signal?.addEventListener('abort', () => {
          if (!this.#waiting.has(String(id))) return;
          cancel();
          reject(new DOMException('Cancelled', 'AbortError'));
        });
        this.#waiting.set(String(id), {
          resolve: (answer) => {
            try {
              resolve(Connection.settled(answer));
            } catch (cause) {
              reject(cause);
            }
          },
        });
        this.#exchange(message).then(undefined, reject);
      });
    } finally {
      forget();
      this.#waiting.delete(String(id));
    }
  }

  /** Sends a request, and resumes its stream until the response is there. */
  async #exchange(message: RpcMessage) {
    const id = String(message.id);
    let lastEvent: string | undefined;
    let pause = 1000;
    const reading = {
      onMessage: (one: RpcMessage) => this.#take(one),
      onEvent: (event: string | undefined, retry: number | undefined) => {
        if (event !== undefined) lastEvent = event;
        if (retry !== undefined) pause = retry;
      },
      signal: this.#closing.signal,
    };
    const label = message.method ?? 'message';
    let failures = 0;
    const first = await this.wire
      .send({ label, method: 'POST', message, headers: this.#headers(), ...reading })
      .catch((cause: unknown) => {
        if (lastEvent === undefined) throw cause;
        return undefined;
      });
    if (!this.#waiting.has(id)) return;
    if (first && lastEvent === undefined) {
      if (first.status === 404) this.listener.ended('The session has ended.');
      throw Connection.missing(first.status, first.text);
    }
    while (this.#waiting.has(id) && failures < 5) {
      await waited(pause, this.#closing.signal);
      const before = lastEvent;
      const headers: Header[] = [...this.#headers(), ['Last-Event-ID', lastEvent ?? '']];
      const resumed = await this.wire
        .send({ label: `${label} (resumed)`, method: 'GET', headers, ...reading })
        .catch(() => undefined);
      if (resumed && resumed.status >= 400) throw Connection.missing(resumed.status, resumed.text);
      failures = lastEvent === before ? failures + 1 : 0;
    }
    if (this.#waiting.has(id)) throw Connection.missing(200, undefined);
  }

  /** Reads the session's own stream, again and again, until the connection is closed. */
  async #hear() {
    let lastEvent: string | undefined;
    let pause = 2000;
    for (let failures = 0; failures < 5 && !this.#closing.signal.aborted; ) {
      try {
        const last: Header[] = lastEvent === undefined ? [] : [['Last-Event-ID', lastEvent]];
        const { status } = await this.wire.send({
          label: 'session stream',
          method: 'GET',
          headers: [...this.#headers(), ...last],
          signal: this.#closing.signal,
          onMessage: (one) => this.#take(one),
          onEvent: (event, retry) => {
            if (event !== undefined) lastEvent = event;
            if (retry !== undefined) pause = retry;
            failures = 0;
          },
        });
        if (status === 404) {
          this.listener.ended('The session has ended.');
          return;
        }
        // 405: this server has no stream of the session.
        if (status === 405) return;
        if (status >= 400) failures += 1;
      } catch {
        failures += 1;
      }
      await waited(pause, this.#closing.signal);
    }
  }

  #take(message: RpcMessage) {
    if (message.method === undefined) {
      this.#waiting.get(String(message.id))?.resolve(message);
      this.#waiting.delete(String(message.id));
      return;
    }
    if (message.id !== undefined && message.id !== null) {
      void this.#answer(message.id, message.method, message.params ?? {});
      return;
    }
    if (message.method === 'notifications/cancelled') {
      this.#questions.get(String(message.params?.requestId))?.abort();
      return;
    }
    this.notified(message);
  }

  async #answer(id: string | number, method: string, params: Members) {
    const asked = new AbortController();
    this.#questions.set(String(id), asked);
    const answer = async (): Promise<RpcMessage> => {
      if (method === 'ping') return { jsonrpc: '2.0', id, result: {} };
      if (!asks.includes(method)) {
        return { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } };
      }
      try {
        const result = await this.listener.ask(method as AskMethod, params, asked.signal);
        return { jsonrpc: '2.0', id, result };
      } catch (cause) {
        const message = cause instanceof Error ? cause.message : 'Refused';
        return { jsonrpc: '2.0', id, error: { code: cause instanceof McpError ? cause.code : -1, message } };
      }
    };
    const message = await answer();
    this.#questions.delete(String(id));
    // A question that the server took back needs no answer.
    if (!asked.signal.aborted) await this.#tell(message, `answer to ${method}`).catch(() => undefined);
  }

  async #tell(message: RpcMessage, label = message.method ?? 'answer') {
    const { status, text } = await this.wire.send({
      label,
      method: 'POST',
      message,
      headers: this.#headers(),
    });
    if (status >= 400) throw Connection.missing(status, text);
  }

  async setLevel(level: Level | null) {
    this.settings = { ...this.settings, level };
    // A session has no way to ask for silence; the highest level comes closest.
    await this.request('logging/setLevel', { level: level ?? 'emergency' });
  }

  async subscribe(uris: string[]) {
    for (const uri of uris.filter((one) => !this.#uris.includes(one))) {
      await this.request('resources/subscribe', { uri });
    }
    for (const uri of this.#uris.filter((one) => !uris.includes(one))) {
      await this.request('resources/unsubscribe', { uri });
    }
    this.#uris = uris;
  }

  async setRoots(roots: ClientSettings['roots']) {
    this.settings = { ...this.settings, roots };
    await this.#tell({ jsonrpc: '2.0', method: 'notifications/roots/list_changed' });
  }

  async close() {
    this.#closing.abort();
    for (const question of this.#questions.values()) question.abort();
    if (this.#session === undefined) return;
    await this.wire
      .send({ label: 'end of the session', method: 'DELETE', headers: this.#headers() })
      .catch(() => undefined);
  }

  #headers(): Header[] {
    return [
      ...(this.#session === undefined ? [] : [['Mcp-Session-Id', this.#session] as Header]),
      ...(this.#version === undefined ? [] : [['MCP-Protocol-Version', this.#version] as Header]),
    ];
  }
}

/** Waits; the end of the connection throws. */
function waited(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(new TransportFault(0, 'The connection was closed.'));
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(new TransportFault(0, 'The connection was closed.'));
    });
  });
}
