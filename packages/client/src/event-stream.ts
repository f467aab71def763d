/** Server-sent events, as the HTML standard has them. `EventSource` cannot send a token. */

export interface ServerEvent {
  readonly id: string;
  readonly type: string;
  readonly data: string;
}

/** Accepts text in pieces of any size, without a byte order mark. */
export class EventParser {
  /** Milliseconds that the server wants a client to wait before it comes back. */
  retryMs: number | undefined;
  #rest = '';
  #id = '';
  #type = '';
  #data: string[] = [];

  /** The events that this piece completes. */
  push(text: string): ServerEvent[] {
    const piece = this.#rest + text;
    // A carriage return at the end may be half a line break.
    const held = piece.endsWith('\r') ? '\r' : '';
    const lines = piece.slice(0, piece.length - held.length).split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? '') + held;
    return lines.flatMap((line) => this.#take(line) ?? []);
  }

  #take(line: string): ServerEvent | undefined {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') this.#data.push(value);
    else if (name === 'event') this.#type = value;
    else if (name === 'id' && !value.includes('\0')) this.#id = value;
    else if (name === 'retry' && /^\d+$/.test(value)) this.retryMs = Number(value);
    // All else is a comment, or of a later standard.
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
