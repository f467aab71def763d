import { isDeepStrictEqual } from 'node:util';
import { type Grant, SCOPES, type Scope } from '../../domain/scope.ts';
import type { Body, StoredBody } from './body.ts';
import { type TokenRecord, tokenContent } from './build.ts';
import { Document } from './document.ts';
import { decodeDocument, encoding } from './format.ts';
import { documentId } from './keys.ts';

/** The start of the ids of tokens. */
export const TOKEN = documentId({ kind: 'token', hash: '' });

const NO_SOURCES: readonly string[] = [];
const NO_INDEX = Buffer.from('[]');

/** A token without its encoded value, which has three times the bytes. Only a dump needs it, and makes it again. */
export class TokenDocument extends Document {
  readonly id: string;
  readonly grant: Grant;
  /** In milliseconds; null for never. */
  readonly expiresAt: number | null;
  readonly isRevoked: boolean;
  /** The token itself, once a request with it was accepted. */
  text: string | undefined;
  /** In the order of the record, also those that only a newer release knows: it may read the dump. */
  readonly #scopes: readonly string[];

  constructor(id: string, { version, body }: Document) {
    super(version);
    this.id = id;
    const record = JSON.parse(body.identity.toString()) as TokenRecord;
    const { id: tokenId, organizationId, scopes, expiresAt, revoked } = record;
    const known = sharedScopes(scopes);
    this.grant = { tokenId, organizationId, scopes: known };
    this.#scopes = isDeepStrictEqual(known, scopes) ? known : scopes;
    this.expiresAt = expiresAt;
    this.isRevoked = revoked;
  }

  get body(): Body | StoredBody {
    const { id, version, grant, expiresAt, isRevoked: revoked } = this;
    const { tokenId, organizationId } = grant;
    const record = { id: tokenId, organizationId, scopes: this.#scopes, expiresAt, revoked };
    return encoding(tokenContent(id.slice(TOKEN.length), version, record)).document.body;
  }

  get sources(): readonly string[] {
    return NO_SOURCES;
  }

  get currency(): undefined {
    return undefined;
  }

  get index(): Buffer {
    return NO_INDEX;
  }

  get size(): number {
    return 0;
  }

  detach(): void {}

  onGrowth(): void {}

  slice(): undefined {
    return undefined;
  }
}

/** Returns the form of a document that memory stores. @throws an error for a token whose value has no record of a token */
export function formForMemory(id: string, document: Document): Document {
  const isStored = !id.startsWith(TOKEN) || document instanceof TokenDocument;
  return isStored ? document : new TokenDocument(id, document);
}

/** Decodes a value to the form that memory stores. Returns undefined for a damaged one, and for a token without its record. */
export function decodeForMemory(id: string, value: Buffer): Document | undefined {
  const document = decodeDocument(id, value);
  try {
    return document && formForMemory(id, document);
  } catch {
    return undefined;
  }
}

/** Returns the scopes that this release knows. All tokens with the same ones have the same array. */
function sharedScopes(scopes: readonly string[]): readonly Scope[] {
  const index = SCOPES.reduce((sum, scope, i) => sum + (scopes.includes(scope) ? 2 ** i : 0), 0);
  SHARED[index] ??= SCOPES.filter((scope) => scopes.includes(scope));
  return SHARED[index];
}

const SHARED: (readonly Scope[])[] = [];
