import type { EncodedBody } from './answer.ts';
import { type Body, hashOf } from './body.ts';
import { BYTES_PER_KEY } from './memory-costs.ts';

/** Where a document's data is from, and what its prices are in. */
export interface Provenance {
  /** Sources, and regions of sources, whose freshness is the document's. */
  readonly sources: readonly string[];
  /** Of the prices in it; undefined while the database does not know it, and in documents without prices. */
  readonly currency?: string | undefined;
}

/** A document as readers have it. */
export class Document {
  readonly version: number;
  readonly body: Body;
  readonly sources: readonly string[];
  readonly currency: string | undefined;
  #index: Buffer;
  /** The stored value, of which body and index are parts, while it is a part of a reply. */
  #value: Buffer | undefined;
  readonly #initialSize: number;
  #keys: Set<string> | undefined;
  #onGrowth: (() => void) | undefined;

  /** @param size bytes of all this, without the codings of the body that are still to be made */
  constructor(version: number, body: Body, { sources, currency }: Provenance, index: Buffer, size: number) {
    this.version = version;
    this.body = body;
    this.sources = sources;
    this.currency = currency;
    this.#index = index;
    this.#initialSize = size;
    if (body.isPlainOnly) body.onCompressed = () => this.#onGrowth?.();
  }

  /** JSON: where in the body each element lies. */
  get index(): Buffer {
    return this.#index;
  }

  /** The same document, of a value that may be a part of a larger reply. */
  partOf(value: Buffer): this {
    this.#value = value;
    return this;
  }

  /** Copies the value out of the reply that it is a part of: in memory, it would hold the whole reply. */
  detach(): void {
    const value = this.#value;
    this.#value = undefined;
    if (!value || value.buffer.byteLength <= value.length * 1.25) return;
    const copy = Buffer.allocUnsafeSlow(value.length);
    value.copy(copy);
    const moved = ({ byteOffset, length }: Buffer) => {
      const start = byteOffset - value.byteOffset;
      return copy.subarray(start, start + length);
    };
    this.#index = moved(this.#index);
    this.body.move(moved);
  }

  /** Bytes of the value and of what was made of it later, see `onGrowth`. */
  get size(): number {
    return this.#initialSize + this.body.addedBytes + (this.#keys?.size ?? 0) * BYTES_PER_KEY;
  }

  /** Sets who is told when the document takes more room. */
  onGrowth(listener: () => void): void {
    this.#onGrowth = listener;
  }

  /** Whether the index names this key. The first call parses the whole index. */
  has(key: string): boolean {
    return (this.#keys ?? this.#parseKeys()).has(key);
  }

  #parseKeys(): Set<string> {
    const entries: [key: string, place: unknown][] = JSON.parse(this.index.toString());
    const keys = new Set(entries.map(([key]) => key));
    this.#keys = keys;
    this.#onGrowth?.();
    return keys;
  }

  /** The keys that the index names. */
  keys(): Iterable<string> {
    return this.#keys ?? this.#parseKeys();
  }

  /** Whether the index names the same keys, in the same order and for the same places, as the other's. */
  isIndexedAs(other: Document): boolean {
    return this.index.equals(other.index);
  }

  /** One element of the list, by its key; undefined when the list has none. The bytes are shared with the list. */
  slice(key: string): EncodedBody | undefined {
    const place = this.#placeOf(key);
    if (!place) return undefined;
    const identity = this.body.identity.subarray(...place);
    // A single machine or cluster is small: it goes plain.
    return { identity, gzip: undefined, br: undefined, hash: hashOf(identity) };
  }

  /**
   * Where in the body the element lies. The index is searched as text, in a few microseconds for a thousand elements:
   * parsing it would take a hundred times as long, and several times its memory. An entry starts with `["`, which
   * occurs nowhere within a JSON string.
   */
  #placeOf(key: string): readonly [start: number, end: number] | undefined {
    const entry = Buffer.from(`[${JSON.stringify(key)},[`);
    const at = this.index.indexOf(entry);
    if (at === -1) return undefined;
    const from = at + entry.length;
    const place = this.index.toString('latin1', from, this.index.indexOf(']', from));
    const [start, end] = place.split(',').map(Number);
    return start === undefined || end === undefined ? undefined : [start, end];
  }
}
