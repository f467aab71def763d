import { createHash, hash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, gzip, constants as zlib } from 'node:zlib';
import { Slice } from '../../domain/event-loop.ts';
import type { EncodedBody } from './answer.ts';

/** Smaller bodies are not compressed: the header would cost more than it saves. */
export const SMALL = 1024;

/** A body whose codings are made on the first request for one, unless they are given. */
export class Body implements EncodedBody {
  readonly identity: Buffer;
  readonly hash: string;
  gzip: Buffer | undefined;
  br: Buffer | undefined;
  isPlainOnly: boolean;
  addedBytes = 0;
  onCompressed: (() => void) | undefined;
  #compressing: Promise<void> | undefined;

  /** @param codings undefined if `compress` has to make them */
  constructor(identity: Buffer, hash: string, codings: Pick<EncodedBody, 'gzip' | 'br'> | undefined) {
    this.identity = identity;
    this.hash = hash;
    this.gzip = codings?.gzip;
    this.br = codings?.br;
    this.isPlainOnly = codings === undefined && identity.length >= SMALL;
  }

  compress(): Promise<void> {
    this.#compressing ??= this.#compress().finally(() => {
      this.#compressing = undefined;
    });
    return this.#compressing;
  }

  async #compress(): Promise<void> {
    if (!this.isPlainOnly) return;
    const { identity } = this;
    const smaller = (coded: Buffer) => (coded.length < identity.length ? coded : undefined);
    const [zipped, brotli] = await Promise.all([
      promisify(gzip)(identity, { level: 6 }),
      promisify(brotliCompress)(identity, {
        params: { [zlib.BROTLI_PARAM_QUALITY]: 5, [zlib.BROTLI_PARAM_SIZE_HINT]: identity.length },
      }),
    ]);
    this.gzip = smaller(zipped);
    this.br = smaller(brotli);
    this.isPlainOnly = false;
    this.addedBytes = (this.gzip?.length ?? 0) + (this.br?.length ?? 0);
    this.onCompressed?.();
  }
}

/** A body with its codings inside a value of the cache. It makes a part when it is used: many are used once, in one coding. */
export class StoredBody implements EncodedBody {
  readonly hash: string;
  readonly addedBytes = 0;
  readonly isPlainOnly = false;
  #value: Buffer;
  readonly #identityAt: number;
  readonly #gzipAt: number;
  readonly #brAt: number;

  constructor(value: Buffer, hash: string, identityAt: number, gzipAt: number, brAt: number) {
    this.#value = value;
    this.hash = hash;
    this.#identityAt = identityAt;
    this.#gzipAt = gzipAt;
    this.#brAt = brAt;
  }

  /** @param value a copy */
  moveTo(value: Buffer): void {
    this.#value = value;
  }

  get identity(): Buffer {
    return this.#value.subarray(this.#identityAt, this.#gzipAt);
  }

  get gzip(): Buffer | undefined {
    return this.#gzipAt < this.#brAt ? this.#value.subarray(this.#gzipAt, this.#brAt) : undefined;
  }

  get br(): Buffer | undefined {
    return this.#brAt < this.#value.length ? this.#value.subarray(this.#brAt) : undefined;
  }

  async compress(): Promise<void> {}
}

/** Returns the opaque part of a strong ETag: 128 bits of the SHA-256. */
export function hashOf(body: Buffer): string {
  return tagOf(hash('sha256', body, 'base64url'));
}

const tagOf = (digest: string): string => digest.slice(0, 22);

/** Returns the body of an answer that no document has. Its codings are made on the first request for one. */
export function textBody(text: string): Body {
  const identity = Buffer.from(text);
  return new Body(identity, hashOf(identity), undefined);
}

export const jsonBody = (document: unknown): Body => textBody(JSON.stringify(document));

/**
 * The same for a document with a long list, whose elements are shown, written and hashed in slices.
 * @param list the field of the document that has the elements
 */
export async function longBody<List extends string, Element>(
  document: Readonly<Record<List, readonly Element[]>>,
  list: List,
  shown: (element: Element) => unknown,
): Promise<Body> {
  const digest = createHash('sha256');
  const parts: Buffer[] = [];
  const slice = new Slice();
  const write = async (text: string) => {
    const part = Buffer.from(text);
    digest.update(part);
    parts.push(part);
    await slice.next();
  };
  // The request has used a part of its turn.
  await slice.next();
  let text = '';
  for (const [field, value] of Object.entries(document)) {
    if (value === undefined) continue;
    text += `${text === '' && parts.length === 0 ? '{' : ','}${JSON.stringify(field)}:`;
    if (field !== list) {
      text += JSON.stringify(value);
      continue;
    }
    text += '[';
    for (const [i, element] of document[list].entries()) {
      text += `${i === 0 ? '' : ','}${JSON.stringify(shown(element))}`;
      if (!slice.isOver) continue;
      await write(text);
      text = '';
    }
    text += ']';
  }
  await write(`${text}}`);
  return new Body(Buffer.concat(parts), tagOf(digest.digest('base64url')), undefined);
}

export async function encodeBody(identity: Buffer): Promise<EncodedBody> {
  const body = new Body(identity, hashOf(identity), undefined);
  await body.compress();
  return body;
}
