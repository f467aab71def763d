/**
 * Encodes a document as one value in Redis.
 *
 *     FB1 <version, 16 digits> <length of the head, 8 digits> <CRC-32 of all the rest, 8 hex digits>\n
 *     <head: JSON> <index: JSON> <identity> <gzip> <br>
 *
 * The first line has a fixed width, so that the fence and the comparison can read only the version. The identity body is one
 * JSON array (or object). The index has the position of each element, so that a single machine or cluster is a slice of its
 * list and needs no document.
 */
import { crc32 } from 'node:zlib';
import { Body, hashOf } from './body.ts';
import { Document, type Provenance } from './document.ts';
import { type DocumentName, documentId } from './keys.ts';

/**
 * Raise it with each change of this format or of a body: a stored body with the same version counts as current. Values in another
 * format are misses, and publishers replace them.
 */
export const FORMAT = 'FB1';
const VERSION_DIGITS = 16;
const LENGTH_DIGITS = 8;
const CRC_DIGITS = 8;
const VERSION_AT = FORMAT.length + 1;
const LENGTH_AT = VERSION_AT + VERSION_DIGITS + 1;
const CRC_AT = LENGTH_AT + LENGTH_DIGITS + 1;
export const HEADER_LENGTH = CRC_AT + CRC_DIGITS + 1;
const FIRST_LINE = /^FB1 \d{16} \d{8} [0-9a-f]{8}\n$/;

export interface DocumentContent extends Provenance {
  readonly name: DocumentName;
  readonly version: number;
  readonly body: Buffer;
  /** Element key → [start, end) in `body`. */
  readonly index: ReadonlyMap<string, readonly [number, number]>;
}

interface Head {
  readonly id: string;
  readonly hash: string;
  readonly sources: readonly string[];
  readonly currency?: string | undefined;
  /** Bytes of index, identity, gzip, br; 0 for an absent coding. */
  readonly lengths: readonly [number, number, number, number];
}

/** A document, and its value for Redis on demand. */
export interface Encoding {
  readonly document: Document;
  value(): Promise<Buffer>;
}

export function encoding(content: DocumentContent): Encoding {
  const { name, version, body: identity } = content;
  // Columns are never sent to clients, so they have no codings.
  const codings = name.kind === 'columns' ? { gzip: undefined, br: undefined } : undefined;
  const body = new Body(identity, hashOf(identity), codings);
  const index = Buffer.from(JSON.stringify([...content.index]));
  const size = HEADER_LENGTH + index.length + identity.length;
  const document = new Document(version, body, content, index, size);
  return {
    document,
    async value() {
      await body.compress();
      return encodeLoaded(documentId(name), document);
    },
  };
}

export function encodeLoaded(id: string, { version, body, sources, currency, index }: Document): Buffer {
  const empty = Buffer.alloc(0);
  const parts = [index, body.identity, body.gzip ?? empty, body.br ?? empty] as const;
  const head: Head = {
    id,
    hash: body.hash,
    sources,
    currency,
    lengths: [parts[0].length, parts[1].length, parts[2].length, parts[3].length],
  };
  const headBytes = Buffer.from(JSON.stringify(head));
  const first = firstLine(version, headBytes.length, '0'.repeat(CRC_DIGITS));
  const value = Buffer.concat([Buffer.from(first), headBytes, ...parts]);
  value.write(checksum(value).toString(16).padStart(CRC_DIGITS, '0'), CRC_AT, 'latin1');
  return value;
}

export function encodeDocument(content: DocumentContent): Promise<Buffer> {
  return encoding(content).value();
}

function firstLine(version: number, headLength: number, crc: string): string {
  return `${FORMAT} ${String(version).padStart(VERSION_DIGITS, '0')} ${String(headLength).padStart(LENGTH_DIGITS, '0')} ${crc}\n`;
}

/** Returns the CRC-32 of everything except the checksum itself. */
function checksum(value: Buffer): number {
  return crc32(value.subarray(HEADER_LENGTH), crc32(value.subarray(0, CRC_AT)));
}

interface Header {
  readonly version: number;
  readonly headLength: number;
  readonly crc: number;
}

export function parseHeader(value: Buffer): Header | undefined {
  if (value.length < HEADER_LENGTH) return undefined;
  const line = value.toString('latin1', 0, HEADER_LENGTH);
  if (!FIRST_LINE.test(line)) return undefined;
  return {
    version: Number(line.slice(VERSION_AT, VERSION_AT + VERSION_DIGITS)),
    headLength: Number(line.slice(LENGTH_AT, LENGTH_AT + LENGTH_DIGITS)),
    crc: Number.parseInt(line.slice(CRC_AT, CRC_AT + CRC_DIGITS), 16),
  };
}

/**
 * Decodes a value. It returns undefined, which is a miss, for an unknown format, a damaged value, or the value of another
 * document: a misplaced key must never show one organization's clusters to another. The checksum and the digest prove that the
 * encoder wrote the rest.
 * @param name or the document's id
 */
export function decodeDocument(name: DocumentName | string, value: Buffer): Document | undefined {
  const header = parseHeader(value);
  if (!header || header.crc !== checksum(value)) return undefined;
  let offset = HEADER_LENGTH;
  const take = (length: number): Buffer => {
    const part = value.subarray(offset, offset + length);
    offset += length;
    return part;
  };
  const head: Head = JSON.parse(take(header.headLength).toString());
  if (head.id !== (typeof name === 'string' ? name : documentId(name))) return undefined;
  const [index, identity, gzip, br] = head.lengths.map(take) as [Buffer, Buffer, Buffer, Buffer];
  if (hashOf(identity) !== head.hash) return undefined;
  const coding = (bytes: Buffer) => (bytes.length > 0 ? bytes : undefined);
  // A dump may lack codings, which are then made on demand.
  const codings = gzip.length + br.length > 0 ? { gzip: coding(gzip), br: coding(br) } : undefined;
  const body = new Body(identity, head.hash, codings);
  return new Document(header.version, body, head, index, value.length).partOf(value);
}

/** Returns true for a value in the format of another release. */
export function isForeignFormat(value: Buffer): boolean {
  return (
    /^FB\d+ /.test(value.toString('latin1', 0, 16)) &&
    !value.toString('latin1', 0, 4).startsWith(`${FORMAT} `)
  );
}
