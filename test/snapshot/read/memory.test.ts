import { describe, expect, it } from 'vitest';
import type { Document } from '../../../src/snapshot/document/document.ts';
import {
  type DocumentContent,
  decodeDocument,
  encodeLoaded,
  encoding,
} from '../../../src/snapshot/document/format.ts';
import { BYTES_PER_DOCUMENT } from '../../../src/snapshot/read/budget.ts';
import { DocumentMemory } from '../../../src/snapshot/read/memory.ts';
import { until } from '../../support/until.ts';
import { LINKED } from './linked.ts';

const READ = { epoch: 1, at: 0 };

function memoryOf(memoryLimit: number) {
  const invalidated: string[] = [];
  const memory = new DocumentMemory({
    ...LINKED,
    memoryLimit,
    bytesPerEntry: BYTES_PER_DOCUMENT,
    onInvalidate: (id) => invalidated.push(id),
  });
  const serve = (id: string, document: Document, isOfCache = false) =>
    memory.onServed({ id, name: { kind: 'region', regionId: 1 } }, { document, ...READ, isOfCache });
  const isStored = (id: string) => memory.getFresh(id, 'region') !== undefined;
  return { memory, serve, isStored, invalidated };
}

/** A region's document of this many bytes, not yet compressed. */
function plainDocument(bytes: number, version = 1): Document {
  const content: DocumentContent = {
    name: { kind: 'region', regionId: 1 },
    version,
    // Compresses to about three quarters.
    body: Buffer.from(Array.from({ length: bytes }, () => 32 + Math.floor(Math.random() * 64))),
    index: new Map(),
    sources: [],
  };
  return encoding(content).document;
}

it('a document that becomes too large with its codings leaves memory, and is invalidated', async () => {
  const { memory, serve, invalidated } = memoryOf(60_000);
  const document = plainDocument(40_000);
  serve('region:1', document);
  expect(memory.getFresh('region:1', 'region')?.document).toBe(document);
  expect(invalidated).toEqual([]);
  await document.body.compress();
  expect(memory.getFresh('region:1', 'region')).toBeUndefined();
  expect(invalidated).toEqual(['region:1']);
});

it('a document that grows within the limit stays, is counted with its new size, and is not invalidated', async () => {
  const { memory, serve, invalidated } = memoryOf(200_000);
  const document = plainDocument(40_000);
  serve('region:1', document);
  const before = memory.size;
  await document.body.compress();
  expect(memory.getFresh('region:1', 'region')?.document).toBe(document);
  expect(memory.size).toBeGreaterThan(before + 40_000);
  expect(invalidated).toEqual([]);
});

it('a stored document does not keep the reply in memory that it came with', () => {
  const { memory, serve } = memoryOf(100_000);
  const value = encodeLoaded('region:1', plainDocument(900));
  const reply = Buffer.concat([Buffer.alloc(60_000), value]);
  const document = decodeDocument('region:1', reply.subarray(60_000)) ?? expect.unreachable('it is a miss');
  const body = Buffer.from(document.body.identity);
  serve('region:1', document, true);
  const stored = memory.getFresh('region:1', 'region')?.document;
  expect(stored?.body.identity.buffer.byteLength).toBe(value.length);
  expect(stored?.body.identity).toEqual(body);
});

it('invalidates only evicted, replaced and outdated documents', () => {
  const { memory, serve, invalidated } = memoryOf(100_000);
  for (const id of ['region:1', 'region:2', 'region:3']) serve(id, plainDocument(40_000));
  expect(invalidated.splice(0)).toEqual(['region:1']);
  serve('region:2', plainDocument(40_000, 2));
  expect(invalidated.splice(0)).toEqual(['region:2']);
  memory.onPublished('region:2', 2);
  expect(invalidated).toEqual([]);
  memory.onPublished('region:2', 3);
  expect(invalidated.splice(0)).toEqual(['region:2']);
  expect(memory.getFresh('region:2', 'region')).toBeUndefined();
  expect(memory.getAny('region:2')?.version).toBe(2);
  memory.onPublished('region:4', 1);
  expect(invalidated).toEqual([]);
});

describe('a full memory', () => {
  const OF_CACHE = true;

  /** Has room for two documents of 40,000 bytes, which it has. */
  function fullMemory() {
    const made = memoryOf(100_000);
    for (const id of ['region:1', 'region:2']) made.serve(id, plainDocument(40_000), OF_CACHE);
    expect([made.isStored('region:1'), made.isStored('region:2')]).toEqual([true, true]);
    return made;
  }

  it('keeps its documents while many others are read once', () => {
    const { memory, serve, isStored, invalidated } = fullMemory();
    const before = memory.size;
    for (let id = 100; id < 1000; id++) serve(`region:${id}`, plainDocument(40_000), OF_CACHE);
    expect([isStored('region:1'), isStored('region:2')]).toEqual([true, true]);
    expect(memory.size).toBe(before);
    expect(invalidated).toEqual([]);
  });

  it('stores a document at its second read, in place of the one that was used least', () => {
    const { serve, isStored, invalidated } = fullMemory();
    serve('region:3', plainDocument(40_000), OF_CACHE);
    expect(isStored('region:3')).toBe(false);
    serve('region:4', plainDocument(40_000), OF_CACHE);
    serve('region:3', plainDocument(40_000), OF_CACHE);
    expect(isStored('region:3')).toBe(true);
    expect(invalidated).toEqual(['region:1']);
  });

  it('stores an evicted document at its second read after that', () => {
    const { serve, isStored } = fullMemory();
    for (let reads = 0; reads < 2; reads++) serve('region:3', plainDocument(40_000), OF_CACHE);
    expect(isStored('region:1')).toBe(false);
    serve('region:1', plainDocument(40_000), OF_CACHE);
    expect(isStored('region:1')).toBe(false);
    serve('region:1', plainDocument(40_000), OF_CACHE);
    expect(isStored('region:1')).toBe(true);
  });

  it('stores a document at its second read after each eviction', () => {
    const { serve, isStored } = fullMemory();
    const read = (id: string) => serve(id, plainDocument(40_000), OF_CACHE);
    for (let evictions = 0; evictions < 3; evictions++) {
      read('region:3');
      expect(isStored('region:3')).toBe(false);
      read('region:3');
      expect(isStored('region:3')).toBe(true);
      for (const id of ['region:1', 'region:2']) {
        read(id);
        read(id);
      }
      expect(isStored('region:3')).toBe(false);
    }
  });

  it('stores documents that are read in turn, in place of those that nobody reads', () => {
    const { memory, serve, isStored } = memoryOf(1_000_000);
    const document = plainDocument(100);
    let former = 0;
    for (let size = -1; size < memory.size; former++) {
      ({ size } = memory);
      serve(`region:former-${former}`, document);
    }
    const ids = Array.from({ length: former / 2 }, (_, id) => `region:${id}`);
    for (let rounds = 0; rounds < 150; rounds++)
      for (const id of ids) if (!isStored(id)) serve(id, document, OF_CACHE);
    expect(ids.filter(isStored).length).toBeGreaterThan(ids.length * 0.9);
  });

  it('stores a small document for which it still has room', () => {
    const { serve, isStored } = fullMemory();
    serve('region:3', plainDocument(100), OF_CACHE);
    expect(isStored('region:3')).toBe(true);
  });

  it('stores at the first read what only Postgres has, and a newer version of what it has', () => {
    const { memory, serve, isStored } = fullMemory();
    serve('region:2', plainDocument(40_000, 2), OF_CACHE);
    expect(memory.getFresh('region:2', 'region')?.document?.version).toBe(2);
    serve('region:3', plainDocument(40_000));
    expect(isStored('region:3')).toBe(true);
  });

  it('knows the version of a document that it has not stored, and newer announced ones, within a lineage', () => {
    const { memory, serve } = fullMemory();
    expect(memory.known('region:3')).toEqual({ document: undefined, version: 0 });
    serve('region:3', plainDocument(40_000, 7), OF_CACHE);
    expect(memory.known('region:3')).toEqual({ document: undefined, version: 7 });
    memory.onPublished('region:3', 9);
    memory.onPublished('region:3', 8);
    expect(memory.known('region:3').version).toBe(9);
    memory.onPublished('region:5', 4);
    expect(memory.known('region:5').version).toBe(0);
    memory.onLineage();
    expect(memory.known('region:3').version).toBe(0);
  });

  it('knows the version of a document that it has evicted, or that is larger than memory', () => {
    const { memory, serve } = fullMemory();
    memory.onPublished('region:1', 5);
    serve('region:3', plainDocument(90_000, 3));
    expect(memory.known('region:1')).toEqual({ document: undefined, version: 5 });
    serve('region:4', plainDocument(100_000, 6));
    expect(memory.known('region:4')).toEqual({ document: undefined, version: 6 });
  });

  it('holds its limit after documents that were stored in the same turn', async () => {
    const { memory, serve } = memoryOf(2_000_000);
    memory.resize(100_000);
    for (let id = 0; id < 20; id++) serve(`region:${id}`, plainDocument(40_000));
    await until(() => memory.size <= 100_000, { timeoutMs: 5000 });
    expect(memory.size).toBeGreaterThan(40_000);
  });

  it('holds its limit in any order of reads, publications and evictions', () => {
    const { memory, serve } = memoryOf(200_000);
    for (let i = 0; i < 5000; i++) {
      const id = `region:${Math.floor(40 * Math.random() ** 2)}`;
      if (i % 7 === 0) memory.onPublished(id, i);
      else serve(id, plainDocument(1000 + Math.floor(20_000 * Math.random()), i), i % 3 > 0);
      expect(memory.size).toBeLessThanOrEqual(200_000);
    }
  });
});
