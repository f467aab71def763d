import { expect, it } from 'vitest';
import type { Document } from '../../src/snapshot/document/document.ts';
import type { DocumentName } from '../../src/snapshot/document/keys.ts';
import { documentId } from '../../src/snapshot/document/keys.ts';
import { checkNowAndThen, MemoryCheck, type MemoryVerdict } from '../../src/snapshot/read/memory-check.ts';
import { until } from '../support/until.ts';
import { reprice } from './rows.ts';
import { sceneForEachTest, type TestReader } from './scene.ts';

const scene = sceneForEachTest();
const region = (): DocumentName => ({ kind: 'region', regionId: scene.sample.region });

/** A reader that holds everything in memory, and a check of it that notes its verdicts. */
async function warmReader(): Promise<TestReader> {
  await scene.publisher.publishDirty();
  const reader = await scene.linkedReader({ pollMs: 60_000 });
  await reader.catalogue.machines(scene.sample.provider, scene.sample.region);
  await reader.catalogue.machines(scene.sample.provider, scene.sample.emptyRegion);
  return reader;
}

function checkOf(
  reader: TestReader,
  documents: Pick<TestReader['documents'], 'getFresh'> = reader.documents,
) {
  const verdicts: MemoryVerdict[] = [];
  const rounds: number[] = [];
  const check = new MemoryCheck({
    documents,
    subscription: reader.link,
    sample: 40,
    now: () => 5000,
    observe: { compared: (verdict) => void verdicts.push(verdict), round: (at) => void rounds.push(at) },
  });
  return { check, verdicts, rounds };
}

it('finds the memory of a reader that hears everything as the cache is', async () => {
  const reader = await warmReader();
  const { check, verdicts, rounds } = checkOf(reader);
  await check.round();
  expect(verdicts).toEqual(['same', 'same', 'same']);
  expect(rounds).toEqual([5]);
});

it('makes a reader notice a publication of which it heard nothing', async () => {
  const reader = await warmReader();
  await reprice(scene.sql, scene.sample.small, '0.5');
  // As when a message is lost: the document is there, and nobody was told.
  const before = await scene.cache.get(scene.keys.revision(0));
  await scene.cache.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await scene.publisher.publishDirty();
  expect(await scene.cache.get(scene.keys.revision(0))).not.toBe(before);
  await until(() => reader.link.linked);
  const { check, verdicts } = checkOf(reader);
  await check.round();
  expect(verdicts).not.toContain('behind');
  const answer = await reader.catalogue.machine(scene.sample.small);
  expect(JSON.parse(answer?.body.identity.toString() ?? '').price).toBe(0.5);
});

it('tells of memory that goes on answering with what the cache has replaced', async () => {
  const reader = await warmReader();
  const stuck: Document | undefined = reader.documents.getFresh(region());
  await reprice(scene.sql, scene.sample.small, '0.5');
  await scene.publisher.publishDirty();
  const { check, verdicts } = checkOf(reader, {
    getFresh: (name) => (documentId(name) === documentId(region()) ? stuck : reader.documents.getFresh(name)),
  });
  await check.round();
  expect(verdicts.toSorted()).toEqual(['behind', 'same', 'same']);
});

it('tells when the cache has lost what memory has', async () => {
  const reader = await warmReader();
  const key = scene.keys.document(region());
  const old = (await scene.cache.getBuffer(key)) ?? '';
  const version = await reprice(scene.sql, scene.sample.small, '0.5');
  await scene.publisher.publishDirty();
  await until(async () => (await reader.documents.get(region())).document?.version === version);
  await scene.cache.set(key, old);
  const { check, verdicts } = checkOf(reader);
  await check.round();
  expect(verdicts).toContain('ahead');
});

it('says nothing while the link is down, and comes again by itself when it is up', async () => {
  const reader = await warmReader();
  const { check, verdicts, rounds } = checkOf({
    ...reader,
    link: Object.create(reader.link, { linked: { value: false } }),
  });
  await check.round();
  expect({ verdicts, rounds }).toEqual({ verdicts: [], rounds: [] });
  const linked = checkOf(reader);
  using _ = checkNowAndThen(linked.check, 5);
  await until(() => linked.rounds.length > 2);
  expect(linked.verdicts).toContain('same');
});
