import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Sql } from '../../src/db/connection/connect.ts';
import { offer, openScene, region, type Scene } from '../sync/scene.ts';

let scene: Scene;
let sql: Sql;
beforeAll(async () => {
  scene = await openScene();
  sql = scene.store.sql;
  return () => scene[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await scene.reset();
  await scene.catalogue([region('a'), offer('a', 'x'), offer('a', 'y')]);
});

const VIOLATION = '23503';
const machines = () => scene.sql`select id, region_id, source_id from machines order by id`;

describe('a reference of machines and prices', () => {
  const machine = (regionId: unknown, source: string | null) => sql`
    insert into machines (region_id, name, cpu, ram, ram_unit, excluded_reason, source_id)
    select ${regionId as number}, n::text, 1, 1, 'Binary', 'unlisted', ${source} from generate_series(1, 3) n`;

  it('needs an existing region', async () => {
    await expect(machine(999_999, null)).rejects.toMatchObject({
      code: VIOLATION,
      message: 'machines.region_id: there is no region 999999',
      column_name: 'region_id',
    });
    await expect(sql`update machines set region_id = 999999`).rejects.toMatchObject({ code: VIOLATION });
  });

  it('needs an existing source, or null', async () => {
    const [found] = await machines();
    await expect(machine(found?.region_id, 'unknown')).rejects.toMatchObject({
      code: VIOLATION,
      message: 'machines.source_id: there is no source "unknown"',
    });
    await expect(sql`update machines set source_id = 'unknown'`).rejects.toMatchObject({ code: VIOLATION });
    await machine(found?.region_id, null);
    expect(await machines()).toHaveLength(5);
  });

  it('needs an existing machine', async () => {
    await expect(sql`
      insert into machine_prices (machine_id, valid_from, source_amount, source_per, source_currency)
      values (999999, now(), 1, 'hour', 'USD')`).rejects.toMatchObject({
      code: VIOLATION,
      message: 'machine_prices.machine_id: there is no machine 999999',
    });
    await expect(
      sql`update machine_prices set machine_id = 999999 where machine_id = (select min(id) from machines)`,
    ).rejects.toMatchObject({ code: VIOLATION });
  });

  it('cannot be deleted', async () => {
    for (const table of ['regions', 'sources', 'machines']) {
      await expect(scene.sql`delete from ${scene.sql(table)}`).rejects.toMatchObject({ code: VIOLATION });
    }
    expect(await machines()).toHaveLength(2);
  });

  it('cannot change its id', async () => {
    for (const [table, id] of [
      ['regions', '7777'],
      ['machines', '7777'],
      ['sources', 'another'],
    ] as const) {
      await expect(
        scene.sql`update ${scene.sql(table)} set id = ${id} where id in (select id from ${scene.sql(table)} limit 1)`,
      ).rejects.toMatchObject({ code: VIOLATION });
    }
  });

  it('cannot be deleted while a transaction that refers to it is open', async () => {
    const [other] = await scene.sql<{ id: number }[]>`
      insert into regions (provider_id, code, name) select provider_id, 'b', 'B' from regions limit 1 returning id`;
    const writing = scene.store.connection();
    await writing.sql`begin`;
    await writing.sql`
      insert into machines (region_id, name, cpu, ram, ram_unit, excluded_reason)
      values (${other?.id ?? 0}, 'z', 1, 1, 'Binary', 'unlisted')`;
    await expect(
      scene.sql.begin(async (impatient) => {
        await impatient`set local lock_timeout = '100ms'`;
        await impatient`delete from regions where id = ${other?.id ?? 0}`;
      }),
    ).rejects.toMatchObject({ code: '55P03' });
    await writing.sql`commit`;
    await writing[Symbol.asyncDispose]();
    await expect(scene.sql`delete from regions where id = ${other?.id ?? 0}`).rejects.toMatchObject({
      code: VIOLATION,
    });
  });

  it('can be deleted when nothing refers to it any more', async () => {
    await scene.sql`insert into regions (provider_id, code, name) select provider_id, 'c', 'C' from regions limit 1`;
    const gone = await scene.sql`delete from regions where code = 'c' returning id`;
    expect(gone).toHaveLength(1);
  });
});
