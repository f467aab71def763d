/** Searches of a reader that starts with only the disk copy of an earlier reader. */
import { expect, it } from 'vitest';
import { Unavailable } from '../../../src/snapshot/document/answer.ts';
import type { TestReader } from '../../snapshot/scene.ts';
import { until } from '../../support/until.ts';
import { diskScene, MINUTE } from './disk-scene.ts';

const disk = diskScene();
const { scene, clock, open, served, everythingDown } = disk;

async function cheapest(reader: TestReader) {
  const answer = await reader.search.search({
    filters: {},
    ramUnit: 'AsSold',
    term: 'on_demand',
    sort: { by: 'price', descending: false },
    limit: 100,
    cursor: undefined,
    fields: undefined,
    organizationId: undefined,
  });
  return { tier: answer?.tier, found: JSON.parse(answer?.body.identity.toString() ?? '{}') };
}

it('finds what the earlier reader found, as tier disk', async () => {
  const before = await served();
  const { found } = await cheapest(before);
  expect(found.machines).toHaveLength(42);
  await before.copy?.flush();
  await everythingDown();
  const reader = open();
  // The reader rejects searches until it has read the machines.
  expect(await until(() => cheapest(reader).catch(() => undefined))).toEqual({ tier: 'disk', found });
});

it('is unavailable STALE_LIMIT after the last confirmation', async () => {
  const before = await served({ staleLimitMs: 10 * MINUTE });
  await cheapest(before);
  await before.copy?.flush();
  await everythingDown();
  clock.forward(10 * MINUTE + 5000);
  await expect(cheapest(open({ staleLimitMs: 10 * MINUTE }))).rejects.toThrow(Unavailable);
});

it('is of tier memory again when the servers are back', async () => {
  const before = await served();
  await cheapest(before);
  await before.copy?.flush();
  await everythingDown();
  const reader = open();
  expect((await cheapest(reader)).tier).toBe('disk');
  await scene.sql`update machines set price = 0.00001 where id = ${scene.sample.big}`;
  await scene.sql`update regions set version = version + 1 where id = ${scene.sample.region}`;
  await scene.publisher.publishDirty();
  await Promise.all([disk.database.heal(), disk.cache.heal()]);
  await until(async () => {
    const { tier, found } = await cheapest(reader);
    return tier === 'memory' && found.machines[0].id === scene.sample.big;
  });
});
