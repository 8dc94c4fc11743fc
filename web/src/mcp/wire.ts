import { isMessage, type RpcMessage, TransportFault } from './messages';
import { EventReader } from './sse';
import { type Header, hiddenToken, type Timeline } from './timeline';

export interface Sending {
  label: string;
  method: 'POST' | 'GET' | 'DELETE';
  headers?: Header[];
  message?: RpcMessage;
  signal?: AbortSignal;
  /** Each message of the answer. */
  onMessage?: (message: RpcMessage) => void;
  /** The id and the pause of an event. */
  onEvent?: (id: string | undefined, retry: number | undefined) => void;
}

export interface Answered {
  status: number;
  headers: Headers;
  /** The body, where it is no JSON-RPC message. */
  text: string | undefined;
}

/** Sends HTTP requests to one MCP endpoint, and writes them to the timeline. The token is only here. */
export class Wire {
  readonly url: string;
  readonly timeline: Timeline;
  readonly #token: string;

  constructor(url: string, token: string, timeline: Timeline) {
    this.url = url;
    this.timeline = timeline;
    this.#token = token;
  }

  /** Sends one request. It is over when the whole answer was read; a broken connection throws. */
  async send(sending: Sending): Promise<Answered> {
    const { method, message, signal, label } = sending;
    const body = message && JSON.stringify(message);
    const accept = method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream';
    const headers: Header[] = [
      ...(method === 'DELETE' ? [] : [['Accept', accept] as Header]),
      ...(body === undefined ? [] : [['Content-Type', 'application/json'] as Header]),
      ...(sending.headers ?? []),
    ];
    const begun = performance.now();
    const elapsed = () => performance.now() - begun;
    const sent: Header[] = [['Authorization', hiddenToken], ...headers];
    const key = this.timeline.begin({ label, method, url: this.url, sent, body });
    try {
      const response = await globalThis.fetch(this.url, {
        method,
        headers: [['Authorization', `Bearer ${this.#token}`], ...headers],
        body,
        signal,
        // The token alone is the proof; the cookie of the console stays here.
        credentials: 'omit',
        cache: 'no-store',
      });
      this.timeline.change(key, () => ({
        status: response.status,
        received: [...response.headers],
        headersMs: elapsed(),
      }));
      const text = await this.#read(key, response, sending, elapsed);
      this.timeline.change(key, () => ({ endedMs: elapsed() }));
      return { status: response.status, headers: response.headers, text };
    } catch (cause) {
      const stopped = signal?.aborted;
      const fault = stopped ? 'Closed by the playground' : 'The connection broke';
      this.timeline.change(key, () => ({ endedMs: elapsed(), fault }));
      if (stopped) throw cause;
      throw new TransportFault(0, 'The connection to the server broke.');
    }
  }

  async #read(
    key: number,
    response: Response,
    { onMessage, onEvent }: Sending,
    elapsed: () => number,
  ): Promise<string | undefined> {
    const stream = response.headers.get('content-type')?.startsWith('text/event-stream');
    if (stream && response.body) {
      const reader = response.body.getReader();
      const decoder = new TextDecoder();
      const events = new EventReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return undefined;
        for (const { data, id, retry } of events.take(decoder.decode(value, { stream: true }))) {
          const message = read(data);
          this.timeline.frame(key, { afterMs: elapsed(), text: data, eventId: id, event: true, message });
          onEvent?.(id, retry);
          if (message) onMessage?.(message);
        }
      }
    }
    const text = await response.text();
    if (text === '') return undefined;
    const message = read(text);
    this.timeline.frame(key, { afterMs: elapsed(), text, eventId: undefined, event: false, message });
    if (!message) return text;
    onMessage?.(message);
    return undefined;
  }
}

function read(text: string): RpcMessage | undefined {
  if (text === '') return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isMessage(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
