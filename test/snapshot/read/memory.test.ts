import { expect, it } from 'vitest';
import type { Document } from '../../../src/snapshot/document/document.ts';
import { type DocumentContent, encoding } from '../../../src/snapshot/document/format.ts';
import { Consistency, DocumentMemory } from '../../../src/snapshot/read/memory.ts';

const READ = { epoch: 1, at: 0 };

function memoryOf(memoryLimit: number) {
  const invalidated: string[] = [];
  const memory = new DocumentMemory({
    rules: new Consistency({
      link: { linked: true, epoch: 1, confirmedAt: () => 0, lastHeartbeatAt: 0 },
      now: () => 0,
      staleLimitMs: 0,
      tokenStaleLimitMs: 0,
    }),
    freshness: { timeOf: () => undefined },
    memoryLimit,
    unknownTokensLimit: 10_000,
    onInvalidate: (id) => invalidated.push(id),
  });
  const serve = (id: string, document: Document) =>
    memory.onServed({ id, name: { kind: 'region', regionId: 1 } }, { document, ...READ });
  return { memory, serve, invalidated };
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
