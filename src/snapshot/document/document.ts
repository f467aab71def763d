import type { EncodedBody } from './answer.ts';
import { Body, hashOf, StoredBody } from './body.ts';

export interface Provenance {
  /** Sources, and regions of sources, that determine the document's freshness. */
  readonly sources: readonly string[];
  readonly currency?: string | undefined;
}

export class Document {
  readonly version: number;
  readonly body: Body | StoredBody;
  readonly sources: readonly string[];
  readonly currency: string | undefined;
  /** The encoded value, which may be a part of a larger Redis reply; without one, the index alone. */
  #value: Buffer;
  readonly #indexAt: number;
  readonly #indexEnd: number;
  #onGrowth: (() => void) | undefined;

  /** @param value has the index from `indexAt` to `indexEnd` */
  constructor(
    version: number,
    body: Body | StoredBody,
    { sources, currency }: Provenance,
    value: Buffer,
    indexAt: number,
    indexEnd: number,
  ) {
    this.version = version;
    this.body = body;
    this.sources = sources;
    this.currency = currency;
    this.#value = value;
    this.#indexAt = indexAt;
    this.#indexEnd = indexEnd;
    if (body instanceof Body && body.isPlainOnly) body.onCompressed = () => this.#onGrowth?.();
  }

  /** JSON: the position of each element in the body. */
  get index(): Buffer {
    return this.#value.subarray(this.#indexAt, this.#indexEnd);
  }

  /** Copies the value out of a larger reply, which the document would otherwise keep in memory. */
  detach(): void {
    const value = this.#value;
    if (!(this.body instanceof StoredBody) || value.buffer.byteLength <= value.length * 1.25) return;
    const copy = Buffer.allocUnsafeSlow(value.length);
    value.copy(copy);
    this.#value = copy;
    this.body.moveTo(copy);
  }

  /** Bytes of the value and of later codings. */
  get size(): number {
    const { body } = this;
    const own = body instanceof StoredBody ? 0 : body.identity.length + body.addedBytes;
    return this.#value.length + own;
  }

  onGrowth(listener: () => void): void {
    this.#onGrowth = listener;
  }

  /** Returns the keys of the index. Each call parses it. */
  keys(): readonly string[] {
    return this.places().map(([key]) => key);
  }

  /** Returns the key of each element with its start and end in the body. Each call parses the index. */
  places(): readonly (readonly [key: string, place: readonly [start: number, end: number]])[] {
    return JSON.parse(this.index.toString());
  }

  /** Returns one element by its key, or undefined. Its bytes are shared with the list. */
  slice(key: string): EncodedBody | undefined {
    // A text search takes a hundredth of the time of parsing. An entry starts with `["`, which no JSON string contains.
    const entry = `[${JSON.stringify(key)},[`;
    const value = this.#value;
    const at = value.indexOf(entry, this.#indexAt);
    // The body behind the index may have the same bytes.
    if (at === -1 || at >= this.#indexEnd) return undefined;
    const place = { at: at + Buffer.byteLength(entry) };
    const start = readNumber(value, place);
    const end = readNumber(value, place);
    const identity = this.body.identity.subarray(start, end);
    // A single machine or cluster is too small for compression.
    return { identity, gzip: undefined, br: undefined, hash: hashOf(identity) };
  }
}

const ZERO = 0x30;
const NINE = 0x39;

/** Reads digits, and moves behind the character after them. */
function readNumber(value: Buffer, place: { at: number }): number {
  let number = 0;
  for (;;) {
    const digit = value[place.at++] ?? 0;
    if (digit < ZERO || digit > NINE) return number;
    number = number * 10 + digit - ZERO;
  }
}
