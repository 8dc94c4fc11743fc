import type { RpcMessage } from './messages';

/** A header as it was sent or received. */
export type Header = [name: string, value: string];

/** One message of an answer, with the time since the request began. */
export interface Frame {
  afterMs: number;
  bytes: number;
  /** The event's `data`, or the whole body. */
  text: string;
  eventId: string | undefined;
  /** It came on an event stream. */
  event: boolean;
  message: RpcMessage | undefined;
}

/** One HTTP request of the playground and all that came back. */
export interface Exchange {
  key: number;
  /** The JSON-RPC method, or what else the request is. */
  label: string;
  method: 'POST' | 'GET' | 'DELETE';
  url: string;
  startedAt: number;
  sent: Header[];
  body: string | undefined;
  bytesOut: number;
  bytesIn: number;
  status: number | undefined;
  received: Header[];
  headersMs: number | undefined;
  endedMs: number | undefined;
  frames: Frame[];
  /** More frames came than are kept. */
  dropped: number;
  fault: string | undefined;
}

const keptExchanges = 200;
const keptFrames = 200;
const keptText = 256 * 1024;
const encoder = new TextEncoder();

export const byteLength = (text: string) => encoder.encode(text).length;

/** What went over the wire, newest last. Values are replaced, never changed, so that React sees the difference. */
export class Timeline {
  #exchanges: readonly Exchange[] = [];
  #count = 0;
  readonly #listeners = new Set<() => void>();

  readonly subscribe = (listener: () => void) => {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  };

  readonly snapshot = () => this.#exchanges;

  clear() {
    this.#set([]);
  }

  begin(
    given: Pick<Exchange, 'label' | 'method' | 'url' | 'sent' | 'body'>,
    now: number = Date.now(),
  ): number {
    this.#count += 1;
    const exchange: Exchange = {
      ...given,
      key: this.#count,
      startedAt: now,
      bytesOut: given.body === undefined ? 0 : byteLength(given.body),
      bytesIn: 0,
      status: undefined,
      received: [],
      headersMs: undefined,
      endedMs: undefined,
      frames: [],
      dropped: 0,
      fault: undefined,
    };
    this.#set([...this.#exchanges, exchange].slice(-keptExchanges));
    return exchange.key;
  }

  change(key: number, change: (exchange: Exchange) => Partial<Exchange>) {
    this.#set(this.#exchanges.map((one) => (one.key === key ? { ...one, ...change(one) } : one)));
  }

  frame(key: number, given: Omit<Frame, 'bytes'>) {
    const bytes = byteLength(given.text);
    this.change(key, ({ frames, bytesIn, dropped }) => ({
      bytesIn: bytesIn + bytes,
      ...(frames.length < keptFrames
        ? { frames: [...frames, { ...given, text: given.text.slice(0, keptText), bytes }] }
        : { dropped: dropped + 1 }),
    }));
  }

  #set(exchanges: readonly Exchange[]) {
    this.#exchanges = exchanges;
    for (const listener of this.#listeners) listener();
  }
}

/** The value that stands in the timeline in place of the token. */
export const hiddenToken = 'Bearer ••••';

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** The request as a command. The token is read from the environment. */
export function asCurl({ method, url, sent, body }: Exchange): string {
  const headers = sent.map(([name, value]) =>
    name.toLowerCase() === 'authorization'
      ? `-H "Authorization: Bearer $PORTOLAN_TOKEN"`
      : `-H ${quoted(`${name}: ${value}`)}`,
  );
  return [
    `curl -sS -N${method === 'POST' ? '' : ` -X ${method}`} ${quoted(url)}`,
    ...headers,
    ...(body === undefined ? [] : [`--data-raw ${quoted(body)}`]),
  ].join(' \\\n  ');
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

/** The exchange as JSON, with bodies as values and not as escaped texts. */
export function asJson(exchange: Exchange): string {
  const { method, url, sent, body, status, received, frames, startedAt, headersMs, endedMs } = exchange;
  return JSON.stringify(
    {
      request: {
        method,
        url,
        headers: Object.fromEntries(sent),
        ...(body !== undefined && { body: parsed(body) }),
      },
      response: {
        status: status ?? null,
        headers: Object.fromEntries(received),
        messages: frames.map(({ afterMs, eventId, text }) => ({
          after_ms: afterMs,
          ...(eventId !== undefined && { event_id: eventId }),
          body: parsed(text),
        })),
      },
      started_at: new Date(startedAt).toISOString(),
      headers_ms: headersMs ?? null,
      ended_ms: endedMs ?? null,
    },
    null,
    2,
  );
}
