/**
 * How a document lies in Redis: one value, replaced whole.
 *
 *     FB1 <version, 16 digits> <length of the head, 8 digits> <CRC-32 of all the rest, 8 hex digits>\n
 *     <head: JSON> <index: JSON> <identity> <gzip> <br>
 *
 * The first line has a fixed width, so that the fence and the sweep read a version without reading the document.
 * The identity body is one JSON array (or object); the index says where each element lies in it, so that a single
 * machine or cluster is a slice of its list and never a document of its own.
 */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, crc32, gzip, constants as zlib } from 'node:zlib';
import { type EncodedBody, HeldAnswer, TEXT_AT_MOST } from './answer.ts';
import { type DocumentName, documentId } from './keys.ts';

/** Raise it whenever readers of the previous release could not read what this one writes. */
export const FORMAT = 'FB1';
const VERSION_DIGITS = 16;
const LENGTH_DIGITS = 8;
const CRC_DIGITS = 8;
/** Bytes of the first line before its checksum. */
const CRC_AT = FORMAT.length + 1 + VERSION_DIGITS + 1 + LENGTH_DIGITS + 1;
/** Bytes of the first line. */
export const HEADER_LENGTH = CRC_AT + CRC_DIGITS + 1;

/** Below this a compressed body saves less than its header costs. */
const SMALL = 1024;

/** A document's content before it is encoded: pure, the same wherever it is built. */
export interface DocumentContent {
  readonly name: DocumentName;
  readonly version: number;
  readonly body: Buffer;
  /** Element key → [start, end) in `body`. */
  readonly index: ReadonlyMap<string, readonly [number, number]>;
  /** Sources whose verification the document's freshness hangs on. */
  readonly sources: readonly string[];
}

interface Head {
  readonly id: string;
  readonly hash: string;
  readonly sources: readonly string[];
  /** Lengths in bytes: index, identity, gzip, br; 0 for an encoding that is not there. */
  readonly lengths: readonly [number, number, number, number];
}

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
  readonly body: EncodedBody;
  readonly sources: readonly string[];
  readonly #ownSize: number;
  readonly #indexBytes: Buffer;
  #index: ReadonlyMap<string, number> | undefined;
  #places = NO_PLACES;
  /** Made with the first of them: most documents have none. */
  #slices: Map<string, Slice> | undefined;
  #held: Held | undefined;
  #onGrowth: (() => void) | undefined;

  constructor(
    version: number,
    body: EncodedBody,
    sources: readonly string[],
    indexBytes: Buffer,
    size: number,
  ) {
    this.version = version;
    this.body = body;
    this.sources = sources;
    this.#ownSize = size;
    this.#indexBytes = indexBytes;
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

/** Opaque part of a strong ETag: 128 bits of the content's SHA-256. */
export function hashOf(body: Buffer): string {
  return createHash('sha256').update(body).digest('base64url').slice(0, 22);
}

/** Encodes a body once, for every answer that will be given from it. */
export async function encodeBody(identity: Buffer): Promise<EncodedBody> {
  const hash = hashOf(identity);
  if (identity.length < SMALL) return { identity, gzip: undefined, br: undefined, hash };
  const [zipped, brotli] = await Promise.all([
    promisify(gzip)(identity, { level: 6 }),
    promisify(brotliCompress)(identity, {
      params: { [zlib.BROTLI_PARAM_QUALITY]: 5, [zlib.BROTLI_PARAM_SIZE_HINT]: identity.length },
    }),
  ]);
  return {
    identity,
    gzip: zipped.length < identity.length ? zipped : undefined,
    br: brotli.length < identity.length ? brotli : undefined,
    hash,
  };
}

/** The one encoder: the value for Redis and the document that the same value decodes to. */
export async function encodeDocument(
  content: DocumentContent,
): Promise<{ value: Buffer; document: Document }> {
  const body = await encodeBody(content.body);
  const index = Buffer.from(JSON.stringify([...content.index]));
  const empty = Buffer.alloc(0);
  const parts = [index, body.identity, body.gzip ?? empty, body.br ?? empty] as const;
  const head: Head = {
    id: documentId(content.name),
    hash: body.hash,
    sources: content.sources,
    lengths: [parts[0].length, parts[1].length, parts[2].length, parts[3].length],
  };
  const headBytes = Buffer.from(JSON.stringify(head));
  const value = Buffer.concat([
    Buffer.from(firstLine(content.version, headBytes.length, '0'.repeat(CRC_DIGITS))),
    headBytes,
    ...parts,
  ]);
  value.write(checksum(value), CRC_AT, 'latin1');
  return { value, document: new Document(content.version, body, content.sources, index, value.length) };
}

function firstLine(version: number, headLength: number, crc: string): string {
  return `${FORMAT} ${String(version).padStart(VERSION_DIGITS, '0')} ${String(headLength).padStart(LENGTH_DIGITS, '0')} ${crc}\n`;
}

/** Over everything but itself. */
function checksum(value: Buffer): string {
  const crc = crc32(value.subarray(HEADER_LENGTH), crc32(value.subarray(0, CRC_AT)));
  return crc.toString(16).padStart(CRC_DIGITS, '0');
}

interface Header {
  readonly version: number;
  readonly headLength: number;
  readonly crc: string;
}

/** What the first line says; undefined for a value in a format that this release does not know. */
export function parseHeader(value: Buffer): Header | undefined {
  if (value.length < HEADER_LENGTH) return undefined;
  const line = value.toString('latin1', 0, HEADER_LENGTH);
  const [, version, headLength, crc] = /^FB1 (\d{16}) (\d{8}) ([0-9a-f]{8})\n$/.exec(line) ?? [];
  if (crc === undefined) return undefined;
  return { version: Number(version), headLength: Number(headLength), crc };
}

/**
 * Reads a stored value. Undefined, which callers take as a miss, when the format is unknown, the value is damaged
 * in any byte, or the envelope names another document than the one asked for: so that a key that went astray, by
 * whatever mistake, never shows one organization's clusters to another.
 */
export function decodeDocument(name: DocumentName, value: Buffer): Document | undefined {
  const header = parseHeader(value);
  if (!header || header.crc !== checksum(value)) return undefined;
  const headEnd = HEADER_LENGTH + header.headLength;
  const head = JSON.parse(value.toString('utf8', HEADER_LENGTH, headEnd)) as Head;
  if (head.id !== documentId(name)) return undefined;
  const [indexLength, identityLength, gzipLength, brLength] = head.lengths;
  let offset = headEnd;
  const take = (length: number): Buffer => {
    const part = value.subarray(offset, offset + length);
    offset += length;
    return part;
  };
  const index = take(indexLength);
  const identity = take(identityLength);
  const gzipped = take(gzipLength);
  const br = take(brLength);
  const body: EncodedBody = {
    identity,
    gzip: gzipped.length > 0 ? gzipped : undefined,
    br: br.length > 0 ? br : undefined,
    hash: head.hash,
  };
  return new Document(header.version, body, head.sources, index, value.length);
}
