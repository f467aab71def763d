import postgres from 'postgres';
import { expect, it } from 'vitest';
import { startReplicatedPostgres } from './postgres-replica.ts';

it('a replica follows, falls behind while its stream hangs, and accepts writes after the primary was killed', async () => {
  await using servers = await startReplicatedPostgres();
  const [primary, replica] = [servers.primary, servers.replica].map(({ url }) =>
    postgres(url, { max: 2 }),
  ) as [postgres.Sql, postgres.Sql];
  try {
    await primary`insert into providers (id, name) values (1, 'one')`;
    await servers.caughtUp();
    expect(await replica`select name from providers where id = 1`).toEqual([{ name: 'one' }]);
    await expect(replica`insert into providers (id, name) values (2, 'two')`).rejects.toMatchObject({
      code: '25006',
    });
    servers.stream.hang();
    await primary`insert into providers (id, name) values (2, 'two')`;
    expect(await replica`select name from providers where id = 2`).toEqual([]);
    await servers.primary.kill();
    await servers.promote();
    await replica`insert into providers (id, name) values (3, 'three')`;
    expect(await replica`select id from providers order by id`).toEqual([{ id: 1 }, { id: 3 }]);
  } finally {
    await Promise.all([primary.end({ timeout: 1 }), replica.end({ timeout: 1 })]);
  }
});
