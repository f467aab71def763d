import { describe, expect, it } from 'vitest';
import { newToken } from '../../../src/domain/token.ts';
import { type TokenRecord, tokenContent } from '../../../src/snapshot/document/build.ts';
import { encodeLoaded, encoding } from '../../../src/snapshot/document/format.ts';
import { documentId } from '../../../src/snapshot/document/keys.ts';
import { TokenDocument } from '../../../src/snapshot/document/token-document.ts';
import { BYTES_PER_TOKEN } from '../../../src/snapshot/read/budget.ts';
import { TokenMemory } from '../../../src/snapshot/read/token-memory.ts';
import { LINKED } from './linked.ts';

const READ = { epoch: 1, at: 0, isOfCache: true };
const RECORD: TokenRecord = {
  id: 7,
  organizationId: 8,
  scopes: ['clusters:read'],
  expiresAt: null,
  revoked: false,
};

/** Has room for this many tokens. */
function tokenMemory(room: number) {
  const memory = new TokenMemory({
    ...LINKED,
    memoryLimit: room * BYTES_PER_TOKEN,
    unknownTokensLimit: 10_000,
    onInvalidate() {},
  });
  const serve = (hash: string, version = 1, record = RECORD) => {
    const { document } = encoding(tokenContent(hash, version, record));
    const token = new TokenDocument(idOf(hash), document);
    memory.onServed({ id: token.id, name: { kind: 'token', hash } }, { document: token, ...READ });
    return token;
  };
  return { memory, serve };
}

const idOf = (hash: string): string => documentId({ kind: 'token', hash });

describe('an accepted token', () => {
  const text = newToken();

  it('is found by its text while its version is the newest', () => {
    const { memory, serve } = tokenMemory(10);
    const token = serve('one');
    expect(memory.find(text)).toBeUndefined();
    memory.accept(token, text);
    expect(memory.find(text)).toBe(token);
    memory.onPublished(token.id, 2);
    expect(memory.find(text)).toBeUndefined();
    const revoked = serve('one', 2, { ...RECORD, revoked: true });
    expect(memory.find(text)).toBeUndefined();
    memory.accept(revoked, text);
    expect(memory.find(text)).toBe(revoked);
    memory.onLineage();
    expect(memory.find(text)).toBeUndefined();
    expect(memory.wasKnown(token.id)).toBe(true);
  });

  it('is not found by its text if memory has not stored it, or has evicted it', () => {
    const { memory, serve } = tokenMemory(1);
    const token = serve('one');
    memory.accept(token, text);
    const notStored = serve('two');
    memory.accept(notStored, newToken());
    expect(memory.find(text)).toBe(token);
    expect(notStored.text).toBeUndefined();
    memory.accept(serve('two'), newToken());
    expect(memory.find(text)).toBeUndefined();
    expect(memory.size).toBe(BYTES_PER_TOKEN);
  });
});

it('a token enters a full memory at its second read, and each use has a version for the comparison', () => {
  const { memory, serve } = tokenMemory(1);
  serve('one');
  expect([...memory.takeUsed()]).toEqual([[idOf('one'), 1]]);
  serve('two', 3);
  expect(memory.getFresh(idOf('two'), 'token')).toBeUndefined();
  expect([...memory.takeUsed()]).toEqual([[idOf('two'), 3]]);
  serve('two', 3);
  expect(memory.getFresh(idOf('two'), 'token')).toBeDefined();
  expect([...memory.takeUsed()]).toEqual([[idOf('two'), 3]]);
});

it('a newer version that PostgreSQL has is known for good, also of a token that is not stored', () => {
  const { memory, serve } = tokenMemory(1);
  serve('one');
  memory.onNewer(idOf('two'), 5);
  for (let i = 0; i < 200; i++) serve(`other ${i}`);
  expect(memory.known(idOf('two'))).toEqual({ document: undefined, version: 5 });
});

it.each([
  ['a scope that only a newer release knows', ['machines:read', 'invoices:read'], ['machines:read']],
  ['another order', ['clusters:read', 'machines:read'], ['machines:read', 'clusters:read']],
])('a token has the same value as its document, with %s among its scopes', (_, scopes, known) => {
  const record = { ...RECORD, scopes, expiresAt: 4_000_000_000_000 };
  const { document } = encoding(tokenContent('one', 3, record));
  const token = new TokenDocument(idOf('one'), document);
  expect(encodeLoaded(token.id, token)).toEqual(encodeLoaded(token.id, document));
  expect(token.grant).toEqual({ tokenId: 7, organizationId: 8, scopes: known });
});
