import type { AskMethod, Era, Level, Members, RpcMessage } from './messages';
import { McpError, TransportFault } from './messages';
import type { Wire } from './wire';

/** Settings of the playground as a client. */
export interface ClientSettings {
  elicitation: boolean;
  sampling: boolean;
  roots: { uri: string; name?: string }[];
  tasks: boolean;
  /** Log messages from this level on; null asks for none. */
  level: Level | null;
}

/** The page, as a connection sees it. */
export interface Listener {
  /** A question of the server. The promise is the result, or it is refused. */
  ask(method: AskMethod, params: Members, signal: AbortSignal): Promise<Members>;
  /** A notification that belongs to no request. */
  notice(message: RpcMessage): void;
  /** The server ended the connection. */
  ended(reason: string): void;
}

export interface CallOptions {
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
  /** 2025-11-25: ask for a task with this life, in milliseconds. */
  taskTtl?: number;
  /** 2026-07-28: the tool's schema. Its annotated arguments become headers. */
  inputSchema?: Members;
}

export interface Progress {
  progress: number;
  total: number | undefined;
  message: string | undefined;
}

export interface ServerFacts {
  name: string;
  version: string;
  title: string | undefined;
  instructions: string | undefined;
  capabilities: Members;
}

export const clientInfo = { name: 'portolan-playground', title: 'Portolan Playground', version: '1' };
export const tasksExtension = 'io.modelcontextprotocol/tasks';

/** One connection to an MCP server: a session of 2025-11-25, or requests of 2026-07-28. */
export abstract class Connection {
  abstract readonly era: Era;
  server: ServerFacts = {
    name: '',
    version: '',
    title: undefined,
    instructions: undefined,
    capabilities: {},
  };
  protected readonly wire: Wire;
  protected readonly listener: Listener;
  protected settings: ClientSettings;
  protected readonly progress = new Map<string, (progress: Progress) => void>();
  #count = 0;

  constructor(wire: Wire, listener: Listener, settings: ClientSettings) {
    this.wire = wire;
    this.listener = listener;
    this.settings = settings;
  }

  /** The session's id, where the era has sessions. */
  get session(): string | undefined {
    return undefined;
  }

  abstract open(): Promise<void>;
  abstract request(method: string, params: Members, options?: CallOptions): Promise<Members>;
  abstract close(): Promise<void>;
  abstract setLevel(level: Level | null): Promise<void>;
  /** Makes these the subscriptions, in place of those before. */
  abstract subscribe(uris: string[]): Promise<void>;
  abstract setRoots(roots: ClientSettings['roots']): Promise<void>;

  /** All entries of a list, page by page. The bound ends a server that pages for ever. */
  async list<T>(method: string, member: string): Promise<T[]> {
    const entries: T[] = [];
    let cursor: unknown;
    for (let page = 0; page < 200; page += 1) {
      const result = await this.request(method, cursor === undefined ? {} : { cursor });
      entries.push(...((result[member] as T[] | undefined) ?? []));
      cursor = result.nextCursor;
      if (typeof cursor !== 'string' || cursor === '') break;
    }
    return entries;
  }

  protected nextId(): number {
    this.#count += 1;
    return this.#count;
  }

  /** Parameters with a progress token, if progress is wanted. The second value forgets the token. */
  protected withProgress(id: number, params: Members, options: CallOptions): [Members, () => void] {
    const { onProgress } = options;
    if (!onProgress) return [params, () => undefined];
    const progressToken = `progress-${id}`;
    this.progress.set(progressToken, onProgress);
    const meta = { ...(params._meta as Members | undefined), progressToken };
    return [{ ...params, _meta: meta }, () => this.progress.delete(progressToken)];
  }

  /** Hands a notification to the request that it belongs to, or to the page. */
  protected notified(message: RpcMessage) {
    const params = message.params ?? {};
    const wanted =
      message.method === 'notifications/progress' && this.progress.get(String(params.progressToken));
    if (wanted) {
      wanted({
        progress: Number(params.progress),
        total: typeof params.total === 'number' ? params.total : undefined,
        message: typeof params.message === 'string' ? params.message : undefined,
      });
      return;
    }
    this.listener.notice(message);
  }

  /** The result of a response, or its error. */
  protected static settled(message: RpcMessage): Members {
    if (message.error) throw new McpError(message.error);
    return message.result ?? {};
  }

  /** The fault of an answer that held no response. */
  protected static missing(status: number, text: string | undefined): TransportFault {
    if (status === 401) return new TransportFault(401, 'The access token is not accepted. Connect again.');
    if (status === 404) return new TransportFault(404, 'The server does not know this address or session.');
    if (status === 429) return new TransportFault(429, 'Too many requests. Wait a moment and try again.');
    if (status >= 400) return new TransportFault(status, `HTTP ${status}${text ? `: ${text}` : ''}`);
    return new TransportFault(status, 'The answer ended without a response.');
  }
}
