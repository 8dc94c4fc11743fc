/** One event of an event stream (HTML, section 9.2). */
export interface StreamEvent {
  data: string;
  id: string | undefined;
  retry: number | undefined;
}

/** Splits an event stream into events. Comments are dropped; CR, LF and CRLF end a line. */
export class EventReader {
  #rest = '';
  #data: string[] = [];
  #id: string | undefined;
  #retry: number | undefined;

  /** Takes a part of the stream, and returns the events that it completes. */
  take(part: string): StreamEvent[] {
    this.#rest += part;
    const events: StreamEvent[] = [];
    for (;;) {
      const end = this.#rest.search(/[\r\n]/);
      // A CR at the end may be the first half of CRLF.
      if (end === -1 || (this.#rest[end] === '\r' && end === this.#rest.length - 1)) return events;
      const line = this.#rest.slice(0, end);
      const width = this.#rest.startsWith('\r\n', end) ? 2 : 1;
      this.#rest = this.#rest.slice(end + width);
      const event = this.#line(line);
      if (event) events.push(event);
    }
  }

  #line(line: string): StreamEvent | undefined {
    if (line === '') {
      const given = this.#data.length > 0 || this.#id !== undefined || this.#retry !== undefined;
      const event = { data: this.#data.join('\n'), id: this.#id, retry: this.#retry };
      this.#data = [];
      this.#id = undefined;
      this.#retry = undefined;
      return given ? event : undefined;
    }
    const colon = line.indexOf(':');
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') this.#data.push(value);
    if (name === 'id' && !value.includes('\0')) this.#id = value;
    if (name === 'retry' && /^\d+$/.test(value)) this.#retry = Number(value);
    return undefined;
  }
}
