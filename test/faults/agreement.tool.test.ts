/** The checks of the other files find differences between PostgreSQL, the cache and the API, and leftovers. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readLineage } from '../../src/db/lineage.ts';
import { CacheKeys } from '../../src/snapshot/document/keys.ts';
import { until } from '../support/until.ts';
import { openWorkerStack, SOURCE, untilSound, type WorkerStack } from './support/worker-stack.ts';

let stack: WorkerStack;
let keys: CacheKeys;
let machine: { readonly id: number; readonly region: number };
beforeAll(async () => {
  stack = await openWorkerStack({ offers: 500 });
  {
    await using worker = await stack.startWorker();
    await until(async () => (await stack.served()).length === 1, { timeoutMs: 60_000, everyMs: 100 });
    await untilSound(stack, worker);
  }
  // No worker may repair the differences below.
  keys = new CacheKeys(await readLineage(stack.store.sql));
  const [row] = await stack.store.sql<{ id: number; region: number }[]>`
    select id, region_id as region from machines order by id limit 1`;
  machine = row ?? expect.unreachable('no machine');
});
afterAll(() => stack[Symbol.asyncDispose]());

const region = () => keys.document({ kind: 'region', regionId: machine.region });

it('finds a document, an age and the region of a machine that the cache lost, and nothing else', async () => {
  expect(await stack.problems()).toEqual([]);
  const document = await stack.cache.getBuffer(region());
  await stack.cache.del(region());
  expect(await stack.problems()).toEqual([
    expect.stringMatching(`cache: region:${machine.region} is missing: 0, and \\d+ in PostgreSQL`),
  ]);
  await stack.cache.set(region(), document ?? '');
  await stack.cache.hdel(keys.machineRegions(machine.id), String(machine.id));
  await stack.cache.hset(keys.stamps, SOURCE, 'catalogue 2020-01-01T00:00:00.000Z');
  expect(await stack.problems()).toEqual([
    `cache: machine ${machine.id} is in region undefined, and in ${machine.region} in PostgreSQL`,
    expect.stringContaining(`cache: ${SOURCE} is of catalogue 2020-01-01`),
  ]);
});

it('finds data of PostgreSQL that readers lack, and a price that is not in the history', async () => {
  await stack.store.sql`update machines set price = price + 1 where id = ${machine.id}`;
  expect(await stack.problems()).toEqual(['1 machines with another price than their history']);
  await stack.store.sql`
    update machine_prices set price = price + 1 where machine_id = ${machine.id} and valid_to is null`;
  const found = await stack.problems();
  expect(found).toContainEqual(expect.stringContaining(`cache: region:${machine.region} is different`));
  expect(found).toContainEqual(expect.stringMatching(/reader a: \/v1\/machines\?.* is another body/));
});

it('finds a slot, a run and a held batch without an owner', async () => {
  const { sql } = stack.store;
  await sql`insert into schedule_slots (schedule, slot, due_at) values (${SOURCE}, '2020-01-01', now())`;
  await sql`insert into sync_runs (source_id, fence) values (${SOURCE}, 0)`;
  await sql`
    with run as (select max(id) as id from sync_runs), batch as (
      insert into held_batches (source_id, run_id, broken, pattern, worst, status)
      select ${SOURCE}, id, '[]', 'all prices × 100: a unit?', '{"rows": [], "total": 0}', 'superseded' from run
      returning id)
    insert into held_items (batch_id, position, item) select id, 0, '{}' from batch`;
  expect(await stack.problems()).toEqual([
    '1 runs that seem to run and have no process',
    '1 items of held batches that are decided',
    '1 held batches whose run has not held them',
    '1 slots that are in no queue',
    '1 slots that are not done with',
  ]);
});
