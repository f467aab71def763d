import type { EncodedBody } from './answer.ts';
import { Body, hashOf, StoredBody } from './body.ts';

export interface Provenance {
  /** Sources, and regions of sources, that determine the document's freshness. */
  readonly sources: readonly string[];
  readonly currency?: string | undefined;
}

/** One version of a document. */
export abstract class Document {
  readonly version: number;
  abstract readonly body: Body | StoredBody;
  abstract readonly sources: readonly string[];
  abstract readonly currency: string | undefined;
  /** JSON: the place of each element in the body. */
  abstract readonly index: Buffer;
  /** Bytes in memory, in addition to those of an entry. */
  abstract readonly size: number;

  constructor(version: number) {
    this.version = version;
  }

  /** Copies what the document needs out of a larger reply, which it would otherwise keep in memory. */
  abstract detach(): void;

  /** Sets the listener for a larger size. */
  abstract onGrowth(listener: () => void): void;

  /** Returns one element by its key, or undefined. Its bytes are shared with the list. */
  abstract slice(key: string): EncodedBody | undefined;

  /** Returns the keys of the index. Each call parses it. */
  keys(): readonly string[] {
    return this.places().map(([key]) => key);
  }

  /** Returns the key of each element with its start and end in the body. Each call parses the index. */
  places(): readonly (readonly [key: string, place: readonly [start: number, end: number]])[] {
    return JSON.parse(this.index.toString());
  }
}

/** A document as the cache or PostgreSQL gave it. */
export class EncodedDocument extends Document {
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
    super(version);
    this.body = body;
    this.sources = sources;
    this.currency = currency;
    this.#value = value;
    this.#indexAt = indexAt;
    this.#indexEnd = indexEnd;
    if (body instanceof Body && body.isPlainOnly) body.onCompressed = () => this.#onGrowth?.();
  }

  get index(): Buffer {
    return this.#value.subarray(this.#indexAt, this.#indexEnd);
  }

  detach(): void {
    const value = this.#value;
    if (!(this.body instanceof StoredBody) || value.buffer.byteLength <= value.length * 1.25) return;
    const copy = Buffer.allocUnsafeSlow(value.length);
    value.copy(copy);
    this.#value = copy;
    this.body.moveTo(copy);
  }

  /** The bytes of the value and of later codings. */
  get size(): number {
    const { body } = this;
    const own = body instanceof StoredBody ? 0 : body.identity.length + body.addedBytes;
    return this.#value.length + own;
  }

  onGrowth(listener: () => void): void {
    this.#onGrowth = listener;
  }

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
