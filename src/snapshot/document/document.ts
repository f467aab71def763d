import { type EncodedBody, HeldAnswer, TEXT_AT_MOST } from './answer.ts';
import { type Body, hashOf } from './body.ts';

/** Bytes that a key takes of which it is remembered that the index names it. */
const KNOWN_KEY = 100;
/** There may be so many; then they are found anew. */
const KNOWN_KEYS_AT_MOST = 4096;
/** Bytes that a slice takes with all that is made of it: views, hash, and what its answer is sent with. */
const SLICE = 1800;
/** Bytes that the header fields take with which the whole is sent, in all codings. */
const SENT_WITH = 1200;
/** The oldest slice makes room for the newest. */
const SLICES_AT_MOST = 2048;

/** An element of a list as readers hold it. */
interface Slice {
  readonly body: EncodedBody;
  held: Held | undefined;
}

/** What a reader keeps with a document. */
interface Held {
  readonly answer: HeldAnswer;
  /** Up to which state of what it was made from the answer is known to be right. */
  state: number;
}

/** Where a document's data is from, and what its prices are in. */
export interface Provenance {
  /** Sources whose verification the document's freshness hangs on. */
  readonly sources: readonly string[];
  /** Of the prices in it; undefined while the database does not know it, and in documents without prices. */
  readonly currency?: string | undefined;
}

/** A document as readers hold it. */
export class Document {
  readonly version: number;
  readonly body: Body;
  readonly sources: readonly string[];
  readonly currency: string | undefined;
  #ownSize: number;
  readonly #indexBytes: Buffer;
  #knownKeys: Set<string> | undefined;
  /** Made with the first of them: most documents have none. */
  #slices: Map<string, Slice> | undefined;
  #held: Held | undefined;
  #onGrowth: (() => void) | undefined;

  /** @param size bytes of all this, without the codings of the body that are still to be made */
  constructor(
    version: number,
    body: Body,
    { sources, currency }: Provenance,
    indexBytes: Buffer,
    size: number,
  ) {
    this.version = version;
    this.body = body;
    this.sources = sources;
    this.currency = currency;
    this.#ownSize = size;
    this.#indexBytes = indexBytes;
    if (!body.isPlainOnly) return;
    body.whenCompressed((bytes) => {
      this.#ownSize += bytes;
      this.#onGrowth?.();
    });
  }

  /** Size in memory, in bytes; it grows as elements are asked for, see `whenGrown`. */
  get size(): number {
    const elements = (this.#knownKeys?.size ?? 0) * KNOWN_KEY + (this.#slices?.size ?? 0) * SLICE;
    return this.#ownSize + elements + (this.#held ? textSize(this.body) + SENT_WITH : 0);
  }

  /** Has whoever keeps the document told when it takes more room. */
  whenGrown(listener: () => void): void {
    this.#onGrowth = listener;
  }

  /** Whether the index names this key. */
  has(key: string): boolean {
    if (this.#knownKeys?.has(key)) return true;
    if (!this.#placeOf(key)) return false;
    this.#knownKeys ??= new Set();
    if (this.#knownKeys.size >= KNOWN_KEYS_AT_MOST) this.#knownKeys.clear();
    this.#knownKeys.add(key);
    this.#onGrowth?.();
    return true;
  }

  /** Whether the index names the same keys, in the same order and for the same places, as the other's. */
  isIndexedAs(other: Document): boolean {
    return this.#indexBytes.equals(other.#indexBytes);
  }

  /** One element of the list, by its key; undefined when the list has none. The bytes are shared with the list. */
  slice(key: string): EncodedBody | undefined {
    return this.#slice(key)?.body;
  }

  /**
   * The answer that was kept with the document, or with one of its elements, made anew by `asOf` when `state` is
   * another than the last time. Undefined for a key that the list has not.
   * @param key undefined for the whole
   * @param state changes whenever `asOf` would
   */
  held(key: string | undefined, state: number, asOf: () => string | undefined): HeldAnswer | undefined {
    const of = key === undefined ? undefined : this.#slice(key);
    if (key !== undefined && of === undefined) return undefined;
    const held = of ? of.held : this.#held;
    if (held?.state === state) return held.answer;
    const time = asOf();
    if (held && held.answer.asOf === time) {
      held.state = state;
      return held.answer;
    }
    const made = { answer: new HeldAnswer(of?.body ?? this.body, time, this.currency), state };
    if (of) {
      of.held = made;
    } else {
      this.#held = made;
      this.#onGrowth?.();
    }
    return made.answer;
  }

  #slice(key: string): Slice | undefined {
    const known = this.#slices?.get(key);
    if (known) return known;
    const place = this.#placeOf(key);
    if (!place) return undefined;
    const identity = this.body.identity.subarray(...place);
    // A single machine or cluster is small: it goes plain.
    const body: EncodedBody = { identity, gzip: undefined, br: undefined, hash: hashOf(identity) };
    const slice: Slice = { body, held: undefined };
    this.#slices ??= new Map();
    if (this.#slices.size >= SLICES_AT_MOST) {
      for (const oldest of this.#slices.keys()) {
        this.#slices.delete(oldest);
        break;
      }
    }
    this.#slices.set(key, slice);
    this.#onGrowth?.();
    return slice;
  }

  /**
   * Where in the body the element lies. The index is searched as the text that it is, a few microseconds for a thousand
   * elements: to read it whole would take a hundred times as long, and as much memory again as the index itself several
   * times over. What is searched for starts with `["`, which stands nowhere within a JSON string.
   */
  #placeOf(key: string): readonly [start: number, end: number] | undefined {
    const entry = Buffer.from(`[${JSON.stringify(key)},[`);
    const at = this.#indexBytes.indexOf(entry);
    if (at === -1) return undefined;
    const from = at + entry.length;
    const place = this.#indexBytes.toString('latin1', from, this.#indexBytes.indexOf(']', from));
    const [start, end] = place.split(',').map(Number);
    return start === undefined || end === undefined ? undefined : [start, end];
  }
}

/** Bytes that a body takes once more when it is sent, see `HeldAnswer.prepared`. */
function textSize({ identity, gzip, br }: EncodedBody): number {
  let size = 0;
  for (const each of [identity, gzip, br]) if (each && each.length <= TEXT_AT_MOST) size += each.length;
  return size;
}
