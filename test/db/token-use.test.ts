import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { openStore, type Store } from '../../src/db/connection/connect.ts';
import { TokenUse, type TokenUseOptions } from '../../src/db/token-use.ts';
import { createToken } from '../../src/db/tokens.ts';
import { SCOPES } from '../../src/domain/scope.ts';
import { faultProxy } from '../support/fault-proxy.ts';
import { until } from '../support/until.ts';
import { openScene, type Scene } from '../sync/scene.ts';

const logger = pino({ level: 'silent' });
const NOON = Date.UTC(2026, 2, 1, 12, 0, 30);

let scene: Scene;
let reader: Store;
let ids: number[];
beforeAll(async () => {
  scene = await openScene();
  reader = openStore({ url: scene.db.url, role: 'reader', statementTimeoutMs: 2500 });
});
afterAll(async () => {
  await reader[Symbol.asyncDispose]();
  await scene[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await scene.reset();
  const organizationId = await scene.organization('org');
  ids = [];
  for (let i = 0; i < 3; i++) {
    ids.push((await createToken(scene.store.db, { organizationId, scopes: SCOPES })).id);
  }
});
afterEach(() => vi.useRealTimers());

const open = (options: Partial<TokenUseOptions> = {}) => new TokenUse({ db: reader.db, logger, ...options });
const lastUsed = async () =>
  (
    await scene.sql<{ at: string | null }[]>`
      select to_char(last_used_at at time zone 'UTC', 'HH24:MI:SS.US') as at from tokens order by id`
  ).map(({ at }) => at);

describe('the last use of a token', () => {
  it('is written to the minute, and no other column of a token changes', async () => {
    const but = () =>
      scene.sql`select id, hash, scopes, created_at, expires_at, revoked_at, version, published_version from tokens order by id`;
    const before = await but();
    await using use = open({ now: () => NOON });
    use.used(ids[0] ?? 0);
    use.used(ids[2] ?? 0);
    use.used(4711);
    await use.write();
    expect(await lastUsed()).toEqual(['12:00:00.000000', null, '12:00:00.000000']);
    expect(await but()).toEqual(before);
  });

  it('never goes back, and is never after the time of the database', async () => {
    const [id = 0] = ids;
    await using late = open({ now: () => NOON });
    await using early = open({ now: () => NOON - 3_600_000 });
    await using wrong = open({ now: () => Date.now() + 86_400_000 });
    late.used(id);
    await late.write();
    early.used(id);
    await early.write();
    expect((await lastUsed())[0]).toBe('12:00:00.000000');
    wrong.used(id);
    await wrong.write();
    const ahead = await scene.sql`select from tokens where last_used_at > now()`;
    expect(ahead).toHaveLength(0);
  });

  it('is one statement a minute for any number of requests, and none without requests', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'], now: NOON });
    const statements = vi.fn();
    const db = new Proxy(reader.db, {
      get(target, name, self) {
        if (name === 'execute') statements();
        return Reflect.get(target, name, self);
      },
    });
    await using use = open({ db });
    for (let request = 0; request < 10_000; request++) use.used(ids[request % 2] ?? 0);
    vi.advanceTimersByTime(59_000);
    expect(statements).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1000);
    await use.write();
    expect(statements).toHaveBeenCalledTimes(1);
    expect(await lastUsed()).toEqual(['12:00:00.000000', '12:00:00.000000', null]);
    vi.advanceTimersByTime(600_000);
    await use.write();
    expect(statements).toHaveBeenCalledTimes(1);
  });

  it('is not written again in the same minute', async () => {
    const [id = 0] = ids;
    await using use = open({ now: () => NOON });
    use.used(id);
    await use.write();
    const before = await scene.rows('tokens');
    use.used(id);
    await use.write();
    expect(await scene.rows('tokens')).toEqual(before);
  });

  it('is written when the process ends', async () => {
    {
      await using use = open({ now: () => NOON });
      use.used(ids[1] ?? 0);
    }
    expect(await lastUsed()).toEqual([null, '12:00:00.000000', null]);
  });

  it('does not wait for locks: it skips a token that another transaction changes', async () => {
    await using use = open({ now: () => NOON });
    for (const id of ids) use.used(id);
    await scene.sql.begin(async (held) => {
      await held`update tokens set version = version + 1 where id = ${ids[1] ?? 0}`;
      await use.write();
    });
    expect(await lastUsed()).toEqual(['12:00:00.000000', null, '12:00:00.000000']);
    use.used(ids[1] ?? 0);
    await use.write();
    expect((await lastUsed())[1]).toBe('12:00:00.000000');
  });
});

describe('while Postgres is away', () => {
  it('uses stay in memory and are written when it is back, each with its own minute', async () => {
    await using proxy = await faultProxy(scene.db.url);
    await using store = openStore({ url: proxy.url, role: 'reader', statementTimeoutMs: 500 });
    let now = NOON;
    await using use = open({ db: store.db, now: () => now });
    await proxy.refuse();
    use.used(ids[0] ?? 0);
    await use.write();
    now += 60_000;
    use.used(ids[1] ?? 0);
    await use.write();
    expect(await lastUsed()).toEqual([null, null, null]);
    await proxy.heal();
    await until(async () => {
      await use.write();
      return (await lastUsed()).filter(Boolean).length === 2;
    });
    expect(await lastUsed()).toEqual(['12:00:00.000000', '12:01:00.000000', null]);
  });

  it('memory is bounded: further tokens are dropped, known ones get newer uses', async () => {
    let now = NOON;
    await using use = open({ atMost: 2, now: () => now });
    for (const id of ids) use.used(id);
    now += 60_000;
    for (const id of ids) use.used(id);
    await use.write();
    expect(await lastUsed()).toEqual(['12:01:00.000000', '12:01:00.000000', null]);
  });

  it('the process ends in time without an answer', async () => {
    await using proxy = await faultProxy(scene.db.url);
    const store = openStore({ url: proxy.url, role: 'reader' });
    await store.sql`select 1`;
    const use = open({ db: store.db });
    use.used(ids[0] ?? 0);
    proxy.hang();
    const start = performance.now();
    await use[Symbol.asyncDispose]();
    expect(performance.now() - start).toBeLessThan(4500);
    await proxy.refuse();
    await store[Symbol.asyncDispose]();
  });
});
