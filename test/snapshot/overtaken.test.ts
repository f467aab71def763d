/** Answers of Postgres that are delayed until a newer publication: each race in turn. */
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { openStore, type Sql, type Store } from '../../src/db/connection/connect.ts';
import { hashToken, newToken } from '../../src/domain/token.ts';
import { CacheKeys } from '../../src/snapshot/document/keys.ts';
import { until } from '../support/until.ts';
import { addMachine, reprice } from './rows.ts';
import { loseEntry, sceneForEachTest, type TestReader } from './scene.ts';

const scene = sceneForEachTest();

let store: Store;
let reader: TestReader;
let held:
  | { statement: string; answered: PromiseWithResolvers<void>; release: PromiseWithResolvers<void> }
  | undefined;

beforeEach(async () => {
  store = openStore({ url: scene.db.url, role: 'reader' });
  held = undefined;
  await scene.publisher.publishDirty();
  reader = await scene.linkedReader({ sql: holding(store.sql) });
  return () => store[Symbol.asyncDispose]();
});

/** The same Sql, but the answer to the selected statement is delayed. */
function holding(sql: Sql): Sql {
  const delayed = <Query extends Promise<unknown>>(query: Query, statement: string): Query => {
    const holds = held;
    if (!holds || !statement.includes(holds.statement)) return query;
    held = undefined;
    const hold = async <T>(rows: T): Promise<T> => {
      holds.answered.resolve();
      await holds.release.promise;
      return rows;
    };
    return new Proxy(query, {
      get(query, name) {
        if (name === 'then')
          return (...handlers: Parameters<typeof query.then>) => query.then(hold).then(...handlers);
        return Reflect.get(query, name);
      },
    });
  };
  return new Proxy(sql, {
    apply: (target, self, parts: [TemplateStringsArray, ...unknown[]]) =>
      delayed(Reflect.apply(target, self, parts), parts[0].join('?')),
    get(target, name) {
      if (name !== 'unsafe') return Reflect.get(target, name);
      return (...given: Parameters<Sql['unsafe']>) => delayed(target.unsafe(...given), given[0]);
    },
  });
}

/** Starts a read and returns once Postgres has answered its statement, before the reader receives the answer. */
async function hold<T>(read: () => Promise<T>, statement: string): Promise<{ answer(): Promise<T> }> {
  const answered = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  held = { statement, answered, release };
  const reading = read();
  await answered.promise;
  return {
    answer() {
      release.resolve();
      return reading;
    },
  };
}

/** Publishes and waits until the reader has received it. */
async function publish(): Promise<void> {
  await scene.publisher.publishDirty();
  await reader.caughtUp();
}

const region = () => ({ kind: 'region', regionId: scene.sample.region }) as const;

const addToken = (token: string) => scene.sql`
  insert into tokens (organization_id, hash, scopes)
  values (${scene.sample.a}, ${Buffer.from(hashToken(token), 'hex')}, '{machines:read}')`;

describe('an answer of Postgres that is older than a publication', () => {
  it('does not make a token unknown that exists now', async () => {
    const token = newToken();
    const late = await hold(async () => reader.tokens.verify(token), 'authenticate_token');
    await addToken(token);
    await publish();
    expect(await late.answer()).toMatchObject({ organizationId: scene.sample.a });
    expect(await reader.tokens.verify(token)).toBeDefined();
  });

  it('does not make a machine unknown that exists now', async () => {
    const id = scene.sample.gpu + 1;
    const late = await hold(async () => reader.catalogue.machine(id), 'where m.id =');
    expect(await addMachine(scene.sql, scene.sample.emptyRegion, { name: 'new' })).toBe(id);
    await publish();
    expect(await late.answer()).toBeUndefined();
    expect(await reader.catalogue.machine(id)).toBeDefined();
  });

  it('is read again before any client gets it', async () => {
    await scene.cache.del(scene.keys.document(region()));
    const late = await hold(async () => reader.documents.get(region()), 'part.machines');
    const version = await reprice(scene.sql, scene.sample.small, '0.5');
    await publish();
    const joined = reader.documents.get(region());
    expect((await late.answer()).document?.version).toBe(version);
    expect((await joined).document?.version).toBe(version);
    expect(reader.documents.getFresh(region())?.version).toBe(version);
  });

  it('does not return through the cache either', async () => {
    await scene.cache.del(scene.keys.document(region()));
    const late = await hold(async () => reader.documents.get(region()), 'part.machines');
    const version = await reprice(scene.sql, scene.sample.small, '0.5');
    await publish();
    await late.answer();
    expect(await reader.link.commands.run((cache) => cache.ping())).toBe('PONG');
    const other = await scene.linkedReader();
    expect((await other.documents.get(region())).document?.version).toBe(version);
    expect(await scene.cache.ttl(scene.keys.document(region()))).toBe(-1);
  });

  it('is compared again if entries were lost during the read', async () => {
    await scene.cache.del(scene.keys.document(region()));
    const late = await hold(async () => reader.documents.get(region()), 'part.machines');
    const { epoch } = reader.link;
    await loseEntry(scene);
    const version = await reprice(scene.sql, scene.sample.small, '0.5');
    await scene.publisher.publishDirty();
    await until(() => reader.link.linked && reader.link.epoch > epoch);
    await late.answer();
    // The entry arrives if the reader has joined again in time. Then the answer was already compared.
    expect([undefined, version]).toContain(reader.documents.getFresh(region())?.version);
    expect((await reader.documents.get(region())).document?.version).toBe(version);
  });
});

describe('an answer of Postgres from before another lineage', () => {
  const replaceDatabase = async () => {
    await scene.sql`update regions set version = 1, published_version = 0, name = 'another'`;
    const lineage = randomUUID();
    await scene.sql`update lineage set id = ${lineage}`;
    await scene.publisher.compare();
    await until(async () => {
      await reader.caughtUp();
      return reader.link.linked && reader.link.keys?.lineage === lineage;
    });
  };

  it('is neither given nor stored, though its version is higher', async () => {
    await scene.cache.del(scene.keys.document(region()));
    const late = await hold(async () => reader.documents.get(region()), 'part.machines');
    await replaceDatabase();
    const { document } = await late.answer();
    expect(document?.version).toBe(1);
    expect(document?.body.identity.includes('"name":"another"')).toBe(true);
    expect(reader.documents.getFresh(region())?.version ?? 1).toBe(1);
  });

  it('does not determine the region of a machine any more', async () => {
    await scene.cache.del(scene.keys.machineRegions(scene.sample.small));
    const late = await hold(async () => reader.documents.regionOfMachine(scene.sample.small), 'where m.id =');
    await replaceDatabase();
    await scene.sql`update machines set region_id = ${scene.sample.emptyRegion} where id = ${scene.sample.small}`;
    await late.answer();
    const { cache, sql } = scene;
    const [row] = await sql<{ id: string }[]>`select id from lineage`;
    await cache.del(new CacheKeys(row?.id ?? '').machineRegions(scene.sample.small));
    expect(await reader.documents.regionOfMachine(scene.sample.small)).toBe(scene.sample.emptyRegion);
  });
});
