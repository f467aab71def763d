/**
 * Encodes a document as one value in Redis.
 *
 *     FB2 <version, 16 digits> <CRC-32 of the rest, 8 hex digits>\n
 *     <version, and the lengths of head, index, identity and gzip, little endian>
 *     <head: id, digest of identity, currency and sources, one a line> <index: JSON> <identity> <gzip> <br>
 *
 * The first line has a fixed width, so that the fence and the comparison can read only the version. The rest has fixed places, so
 * that a reader parses nothing that its answer does not need. The identity body is one JSON array (or object). The index has the
 * place of each element, so that a single machine or cluster is a slice of its list and needs no document.
 */
import { crc32 } from 'node:zlib';
import { Body, hashOf, SMALL, StoredBody } from './body.ts';
import { type Document, EncodedDocument, type Provenance } from './document.ts';
import { type DocumentName, documentId } from './keys.ts';

/**
 * Raise it with each change of this format or of a body: a stored body with the same version counts as current. Values in another
 * format are misses, and publishers replace them.
 */
export const FORMAT = 'FB2';
const VERSION_DIGITS = 16;
const CRC_DIGITS = 8;
const VERSION_AT = FORMAT.length + 1;
const CRC_AT = VERSION_AT + VERSION_DIGITS + 1;
export const HEADER_LENGTH = CRC_AT + CRC_DIGITS + 1;

/** Places after the first line: the version is a double, a length has 32 bits. */
const LENGTHS_AT = HEADER_LENGTH + 8;
const HEAD_AT = LENGTHS_AT + 4 * 4;

export interface DocumentContent extends Provenance {
  readonly name: DocumentName;
  readonly version: number;
  readonly body: Buffer;
  /** Element key → [start, end) in `body`. */
  readonly index: ReadonlyMap<string, readonly [number, number]>;
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
  const document = new EncodedDocument(version, body, content, index, 0, index.length);
  return {
    document,
    async value() {
      await body.compress();
      return encodeLoaded(documentId(name), document);
    },
  };
}

export function encodeLoaded(id: string, { version, body, sources, currency = '', index }: Document): Buffer {
  const { hash, identity, gzip, br } = body;
  const head = Buffer.from([id, hash, currency, ...sources].join('\n'));
  const measured = [head, index, identity, gzip ?? NOTHING];
  const fixed = Buffer.alloc(HEAD_AT);
  fixed.write(`${FORMAT} ${String(version).padStart(VERSION_DIGITS, '0')} ${'0'.repeat(CRC_DIGITS)}\n`);
  fixed.writeDoubleLE(version, HEADER_LENGTH);
  for (const [i, { length }] of measured.entries()) fixed.writeUInt32LE(length, LENGTHS_AT + 4 * i);
  const value = Buffer.concat([fixed, ...measured, br ?? NOTHING]);
  value.write(checksum(value).toString(16).padStart(CRC_DIGITS, '0'), CRC_AT, 'latin1');
  return value;
}

const NOTHING = Buffer.alloc(0);

export function encodeDocument(content: DocumentContent): Promise<Buffer> {
  return encoding(content).value();
}

const checksum = (value: Buffer): number => crc32(value.subarray(HEADER_LENGTH));

interface Header {
  readonly version: number;
  readonly crc: number;
}

const START = Buffer.from(`${FORMAT} `).readUInt32LE();
const SPACE = 0x20;
const LINE_FEED = 0x0a;

/** Each miss of memory parses a first line, so it makes neither a text nor a match. */
export function parseHeader(value: Buffer): Header | undefined {
  if (value.length < HEADER_LENGTH || value.readUInt32LE() !== START) return undefined;
  if (value[CRC_AT - 1] !== SPACE || value[HEADER_LENGTH - 1] !== LINE_FEED) return undefined;
  const version = numberAt(value, VERSION_AT, VERSION_DIGITS, 10);
  const crc = numberAt(value, CRC_AT, CRC_DIGITS, 16);
  return Number.isNaN(version) || Number.isNaN(crc) ? undefined : { version, crc };
}

/** Value of each byte as a digit, `a` to `f` included. */
const DIGITS = Array.from({ length: 256 }, (_, byte) =>
  '0123456789abcdef'.indexOf(String.fromCharCode(byte)),
);

/** Returns a number of a fixed width; NaN if a byte is no digit. */
function numberAt(value: Buffer, at: number, width: number, base: 10 | 16): number {
  let number = 0;
  for (let i = at; i < at + width; i++) {
    const digit = DIGITS[value[i] ?? 0] ?? -1;
    if (digit === -1 || digit >= base) return Number.NaN;
    number = number * base + digit;
  }
  return number;
}

/**
 * Decodes a value. It returns undefined, which is a miss, for an unknown format, a damaged value, or the value of another
 * document: a misplaced key must never show one organization's clusters to another. The checksum proves that the encoder wrote
 * the rest, also the digest of the body.
 * @param name or the document's id
 */
export function decodeDocument(name: DocumentName | string, value: Buffer): Document | undefined {
  const header = parseHeader(value);
  if (!header || value.length < HEAD_AT || header.crc !== checksum(value)) return undefined;
  const { version } = header;
  if (version !== value.readDoubleLE(HEADER_LENGTH)) return undefined;
  const indexAt = HEAD_AT + value.readUInt32LE(LENGTHS_AT);
  const identityAt = indexAt + value.readUInt32LE(LENGTHS_AT + 4);
  const gzipAt = identityAt + value.readUInt32LE(LENGTHS_AT + 8);
  const brAt = gzipAt + value.readUInt32LE(LENGTHS_AT + 12);
  const head = value.toString('utf8', HEAD_AT, indexAt).split('\n');
  const [id, hash = '', currency] = head;
  if (id !== (typeof name === 'string' ? name : documentId(name))) return undefined;
  const origin = { sources: head.slice(3), currency: currency || undefined };
  if (gzipAt < value.length || gzipAt - identityAt < SMALL) {
    const body = new StoredBody(value, hash, identityAt, gzipAt, brAt);
    return new EncodedDocument(version, body, origin, value, indexAt, identityAt);
  }
  // A dump may lack codings, which are then made on demand.
  const body = new Body(Buffer.from(value.subarray(identityAt)), hash, undefined);
  const index = Buffer.from(value.subarray(indexAt, identityAt));
  return new EncodedDocument(version, body, origin, index, 0, index.length);
}

/** Returns true for a value in the format of another release. */
export function isForeignFormat(value: Buffer): boolean {
  return (
    /^FB\d+ /.test(value.toString('latin1', 0, 16)) &&
    !value.toString('latin1', 0, 4).startsWith(`${FORMAT} `)
  );
}
