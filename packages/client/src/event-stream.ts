/** Parses server-sent events as the HTML standard defines them. `EventSource` cannot send a token. */

export interface ServerEvent {
  readonly id: string;
  readonly type: string;
  readonly data: string;
}

/** Parses a stream of text chunks. The chunks may split anywhere, and have no byte order mark. */
export class EventParser {
  /** The server's `retry` field: milliseconds to wait before reconnecting. */
  retryMs: number | undefined;
  #rest = '';
  #id = '';
  #type = '';
  #data: string[] = [];

  /** Adds a chunk, and returns the events that it completes. */
  push(chunk: string): ServerEvent[] {
    const text = this.#rest + chunk;
    // A final carriage return may be the first half of a line break.
    const halfBreak = text.endsWith('\r') ? '\r' : '';
    const lines = text.slice(0, text.length - halfBreak.length).split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? '') + halfBreak;
    return lines.flatMap((line) => this.#parseLine(line) ?? []);
  }

  #parseLine(line: string): ServerEvent | undefined {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') this.#data.push(value);
    else if (name === 'event') this.#type = value;
    else if (name === 'id' && !value.includes('\0')) this.#id = value;
    else if (name === 'retry' && /^\d+$/.test(value)) this.retryMs = Number(value);
    // The standard says to ignore comments and unknown fields.
    return undefined;
  }

  #dispatch(): ServerEvent | undefined {
    const event = { id: this.#id, type: this.#type || 'message', data: this.#data.join('\n') };
    const isEmpty = this.#data.length === 0;
    this.#type = '';
    this.#data = [];
    return isEmpty ? undefined : event;
  }
}
