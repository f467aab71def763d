import { type EncodedBody, HeldAnswer, TEXT_AT_MOST } from './answer.ts';
import { type Body, hashOf } from './body.ts';

/** Bytes that an element takes once the index is read: its key, its place, its entry in the map. */
const INDEXED_ELEMENT = 100;
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

const NO_PLACES = new Uint32Array(0);

/** A document as readers hold it. */
export class Document {
  readonly version: number;
  readonly body: Body;
  readonly sources: readonly string[];
  #ownSize: number;
  readonly #indexBytes: Buffer;
  #index: ReadonlyMap<string, number> | undefined;
  #places = NO_PLACES;
  /** Made with the first of them: most documents have none. */
  #slices: Map<string, Slice> | undefined;
  #held: Held | undefined;
  #onGrowth: (() => void) | undefined;

  /** @param size bytes of all this, without the codings of the body that are still to be made */
  constructor(version: number, body: Body, sources: readonly string[], indexBytes: Buffer, size: number) {
    this.version = version;
    this.body = body;
    this.sources = sources;
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
    const elements = (this.#index?.size ?? 0) * INDEXED_ELEMENT + (this.#slices?.size ?? 0) * SLICE;
    return this.#ownSize + elements + (this.#held ? textSize(this.body) + SENT_WITH : 0);
  }

  /** Has whoever keeps the document told when it takes more room. */
  whenGrown(listener: () => void): void {
    this.#onGrowth = listener;
  }

  /** Whether the index names this key. */
  has(key: string): boolean {
    return this.#elements.has(key);
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
    const made = { answer: new HeldAnswer(of?.body ?? this.body, time), state };
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
    const element = this.#elements.get(key);
    if (element === undefined) return undefined;
    const identity = this.body.identity.subarray(this.#places[element * 2], this.#places[element * 2 + 1]);
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

  /** Key → number of the element. */
  get #elements(): ReadonlyMap<string, number> {
    if (this.#index) return this.#index;
    // Most documents are only ever asked for whole: the index is read when the first element is.
    const entries = JSON.parse(this.#indexBytes.toString()) as [string, [number, number]][];
    this.#places = new Uint32Array(entries.length * 2);
    const index = new Map<string, number>();
    for (const [i, [key, place]] of entries.entries()) {
      this.#places.set(place, i * 2);
      index.set(key, i);
    }
    this.#index = index;
    this.#onGrowth?.();
    return index;
  }
}

/** Bytes that a body takes once more when it is sent, see `HeldAnswer.prepared`. */
function textSize({ identity, gzip, br }: EncodedBody): number {
  let size = 0;
  for (const each of [identity, gzip, br]) if (each && each.length <= TEXT_AT_MOST) size += each.length;
  return size;
}
