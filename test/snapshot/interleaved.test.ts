/**
 * Changes, publications, write-backs, evictions, flushes and failovers in any order, down to single commands.
 * fast-check chooses the next active step. Redis, its scripts and PostgreSQL are real. A failing seed is printed;
 * RANDOM_SEED=<seed> and RANDOM_PATH=<path> repeat it.
 */
import { EventEmitter } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openStore, type Sql, type Store } from '../../src/db/connection/connect.ts';
import { readLineage } from '../../src/db/lineage.ts';
import { openRedis, type RedisClient, redisReady } from '../../src/redis/redis.ts';
import { decodeDocument } from '../../src/snapshot/document/format.ts';
import { CacheKeys, type DocumentName } from '../../src/snapshot/document/keys.ts';
import { withFence } from '../../src/snapshot/publish/fence.ts';
import { Publisher } from '../../src/snapshot/publish/publisher.ts';
import { memoryBudget } from '../../src/snapshot/read/budget.ts';
import { Documents } from '../../src/snapshot/read/documents.ts';
import { CacheLink } from '../../src/snapshot/read/link.ts';
import { PostgresReads } from '../../src/snapshot/read/postgres-reads.ts';
import { createDatabase } from '../support/postgres.ts';
import { runs } from '../support/random.ts';
import { startTestRedis } from '../support/redis.ts';
import { addSample, reprice, type Sample } from './rows.ts';

const silent = pino({ level: 'silent' });
const NEVER_MS = 2 ** 30;
const servers = new AsyncDisposableStack();
let store: Store;
let readerStore: Store;
let cache: Redis;
let sample: Sample;
let keys: CacheKeys;
let name: DocumentName;

beforeAll(async () => {
  const db = servers.use(await createDatabase());
  const redis = servers.use(await startTestRedis());
  store = servers.use(openStore({ url: db.url, role: 'worker', connections: 2 }));
  readerStore = servers.use(openStore({ url: db.url, role: 'reader', connections: 4 }));
  cache = withFence(openRedis(redis.url, 'publisher', () => {})) as Redis;
  servers.defer(() => cache.disconnect());
  await redisReady(cache, 5000);
  // The test orders the steps, so no command may end by its deadline.
  Object.assign(cache.options, { commandTimeout: undefined, socketTimeout: undefined });
  sample = await addSample(store.sql);
  name = { kind: 'region', regionId: sample.region };
  keys = new CacheKeys(await readLineage(store.sql));
});
afterAll(() => servers.disposeAsync());

/** Runs one step after the other in fast-check's order, each as far as it can go alone. */
class Steps {
  readonly #scheduler: fc.Scheduler;
  readonly #check: () => Promise<void>;
  #busy = 0;
  /** Run after each step. Each returns true once it has found what it waits for. */
  readonly #waiting = new Set<() => Promise<boolean>>();

  /** @param check the check after each step */
  constructor(scheduler: fc.Scheduler, check: () => Promise<void>) {
    this.#scheduler = scheduler;
    this.#check = check;
  }

  /** Waits for its turn, runs, and waits again before the caller gets the result. */
  async do<T>(what: string, act: () => Promise<T>): Promise<T> {
    await this.turn(what);
    this.#busy += 1;
    const result = await act().finally(() => {
      this.#busy -= 1;
    });
    await this.turn(`${what}: answered`);
    return result;
  }

  /** Waits, without own steps, until another step makes this defined. */
  until<T>(look: () => Promise<T | undefined>): Promise<T> {
    return new Promise((resolve) => {
      this.#waiting.add(async () => {
        const found = await look();
        if (found === undefined) return false;
        resolve(found);
        return true;
      });
    });
  }

  async #lookAround(): Promise<void> {
    for (const look of [...this.#waiting]) if (await look()) this.#waiting.delete(look);
  }

  turn(what: string): Promise<unknown> {
    return this.#scheduler.schedule(Promise.resolve(), what);
  }

  /** Runs all steps to their end. Between two steps all work settles, so that a seed always gives the same order. */
  run<T>(work: Promise<T>): Promise<T> {
    return this.#scheduler.waitFor(work, async (step) => {
      await step();
      await this.#rest();
    });
  }

  /** Runs all steps that are left. Readers then have every entry. */
  async idle(): Promise<void> {
    await this.#rest();
    while (this.#scheduler.count() > 0) {
      await this.#scheduler.waitOne();
      await this.#rest();
    }
  }

  async #rest(): Promise<void> {
    do await turn();
    while (this.#busy > 0);
    await this.#check();
    await this.#lookAround();
    await turn();
  }
}

/** A connection whose commands are steps. */
function stepping(redis: RedisClient, steps: Steps, who: string): RedisClient {
  return new Proxy(redis, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      if (property === 'on') return () => target;
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) =>
        steps.do(`${who} ${String(property)}`, () => Reflect.apply(value, target, args) as Promise<unknown>);
    },
  });
}

/** A reader's query to PostgreSQL is a step: it gets the answer later. */
function steppingSql(sql: Sql, steps: Steps, who: string): Sql {
  return new Proxy(sql, {
    apply(target, self, args: Parameters<Sql>) {
      const query = Reflect.apply(target, self, args) as PromiseLike<unknown>;
      const then = query.then.bind(query);
      const later: PromiseLike<unknown>['then'] = (done, failed) =>
        steps
          .do(`${who} sql`, () => new Promise((resolve, reject) => void then(resolve, reject)))
          .then(done, failed);
      Reflect.defineProperty(query, 'then', { value: later });
      return query;
    },
  });
}

/** A connection for the stream. A read waits until there is an entry, and gets its reply in a later step. The connection can be cut. */
class StreamConnection extends EventEmitter {
  status = 'ready';
  readonly #steps: Steps;
  readonly #who: string;
  /** Counts connections: replies of a cut connection are lost. */
  #connection = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(steps: Steps, who: string) {
    super();
    this.#steps = steps;
    this.#who = who;
  }

  async xread(...args: Parameters<Redis['xread']>) {
    const withoutBlock = args.filter((_, i) => args[i] !== 'BLOCK' && args[i - 1] !== 'BLOCK');
    return this.#answer('receives', () =>
      this.#steps.until(async () => (await cache.xread(...(withoutBlock as typeof args))) ?? undefined),
    );
  }

  get(key: string) {
    return this.#command('get', () => cache.get(key));
  }

  xrange(...args: Parameters<Redis['xrange']>) {
    return this.#command('xrange', () => cache.xrange(...args));
  }

  xrevrange(...args: Parameters<Redis['xrevrange']>) {
    return this.#command('xrevrange', () => cache.xrevrange(...args));
  }

  hgetall(key: string) {
    return this.#command('hgetall', () => cache.hgetall(key));
  }

  /** A step. Commands of one connection run in their order. */
  #command<T>(what: string, run: () => Promise<T>): Promise<T> {
    const before = this.#last;
    const result = before.then(() => this.#answer(what, () => this.#steps.do(`${this.#who} ${what}`, run)));
    this.#last = result.catch(() => {});
    return result;
  }

  async #answer<T>(what: string, reply: () => Promise<T>): Promise<T> {
    const connection = this.#connection;
    const found = await reply();
    await this.#steps.turn(`${this.#who} ${what}`);
    if (connection !== this.#connection) throw new Error('the connection was cut');
    return found;
  }

  disconnect(reconnects = false): void {
    this.#connection += 1;
    this.status = 'end';
    this.emit('close');
    if (reconnects) void this.#reconnect();
  }

  async #reconnect(): Promise<void> {
    await this.#steps.turn(`${this.#who} connects`);
    this.status = 'ready';
    this.emit('ready');
  }
}

interface TestReader {
  readonly stream: StreamConnection;
  readonly link: CacheLink;
  readonly documents: Documents;
  given: number;
}

function openReader(steps: Steps, who: string, now: () => number): TestReader {
  const stream = new StreamConnection(steps, who);
  const link = new CacheLink({
    commands: stepping(cache, steps, who),
    stream: stream as unknown as Redis,
    logger: silent,
    now,
    silentAfterMs: Number.POSITIVE_INFINITY,
  });
  const reads = new PostgresReads({
    sql: steppingSql(readerStore.sql, steps, who),
    logger: silent,
    now,
    atOnce: 4,
    deadlineMs: NEVER_MS,
  });
  const documents = new Documents({
    postgres: { reads },
    link,
    logger: silent,
    now,
    memory: memoryBudget(64_000_000),
    staleLimitMs: NEVER_MS,
    tokenStaleLimitMs: NEVER_MS,
  });
  return { stream, link, documents, given: 0 };
}

async function versionInCache(): Promise<number> {
  const value = await cache.getBuffer(keys.document(name));
  return (value && decodeDocument(name, value)?.version) ?? 0;
}

/** The cache's data of the document, as a lagging replica has it. */
async function copyOfCache(): Promise<() => Promise<void>> {
  const stored = await Promise.all(
    [keys.document(name), keys.stream].map(async (key) => [key, await cache.dumpBuffer(key)] as const),
  );
  return async () => {
    for (const [key, value] of stored)
      await (value ? cache.restore(key, 0, value, 'REPLACE') : cache.del(key));
  };
}

const ACTS = [
  'change',
  'publish',
  'compare',
  'read a',
  'read b',
  'cut a',
  'cut b',
  'evict',
  'flush',
  'copy',
  'fail over',
] as const;
/** The state that a failover restores, and the newest version that both readers gave since. */
const BEGINNING = ['publish', 'copy', 'change', 'publish', 'read a', 'read b', 'change'] as const;
/** These acts are more frequent: two of each must be active at once. */
const RACING = ['change', 'publish', 'change', 'publish', 'change', 'publish'] as const;
/** Acts that are active at once. */
const AT_ONCE = 8;

it('a version that a reader gave is never followed by an older one, and the newest is given in the end', {
  timeout: 240_000,
}, async () => {
  let price = 1;
  const history = async (scheduler: fc.Scheduler, acts: readonly (typeof ACTS)[number][]) => {
    await cache.flushall();
    // In the cache, only an eviction, a flush or a failover restores an older version.
    let floor = 0;
    const wentBack: string[] = [];
    const steps = new Steps(scheduler, async () => {
      const version = await versionInCache();
      if (version < floor) wentBack.push(`from ${floor} to ${version}`);
      floor = version;
    });
    const lose = (what: string, act: () => Promise<unknown>) =>
      steps.do(what, () => {
        floor = 0;
        return act();
      });
    const publisher = new Publisher(store.db, stepping(cache, steps, 'publisher') as Redis);
    // Without a link, memory is trusted for a second.
    let time = 0;
    const now = () => time;
    const readers = { a: openReader(steps, 'a', now), b: openReader(steps, 'b', now) };
    let failOver = await copyOfCache();
    const read = async (reader: TestReader) => {
      // Concurrent reads of one reader may end in any order: the check compares with versions given before the read
      // began.
      const before = reader.given;
      const version = (await reader.documents.get(name)).document?.version ?? 0;
      expect(version).toBeGreaterThanOrEqual(before);
      reader.given = Math.max(reader.given, version);
    };
    const act: Record<(typeof ACTS)[number], () => Promise<unknown>> = {
      change: () => steps.do('change', () => reprice(store.sql, sample.small, `0.${1000 + price++}`)),
      publish: () => publisher.publishDirty(),
      compare: () => publisher.compare(),
      'read a': () => read(readers.a),
      'read b': () => read(readers.b),
      'cut a': () => steps.do('cut a', async () => readers.a.stream.disconnect(true)),
      'cut b': () => steps.do('cut b', async () => readers.b.stream.disconnect(true)),
      evict: () => lose('evict', () => cache.del(keys.document(name))),
      flush: () => lose('flush', () => cache.flushall()),
      copy: () =>
        steps.do('copy', async () => {
          failOver = await copyOfCache();
        }),
      'fail over': () =>
        lose('fail over', async () => {
          await failOver();
          for (const { stream } of Object.values(readers)) stream.disconnect(true);
        }),
    };
    try {
      for (const each of BEGINNING) await steps.run(act[each]());
      // A few at a time, all active at once.
      for (let from = 0; from < acts.length; from += AT_ONCE)
        await steps.run(
          Promise.all(
            acts.slice(from, from + AT_ONCE).map((each) => {
              time += 300;
              return act[each]();
            }),
          ),
        );
      await steps.run(publisher.compare());
      const newest = await reprice(store.sql, sample.small, `0.${1000 + price++}`);
      await steps.run(publisher.publishDirty());
      await steps.idle();
      for (const reader of Object.values(readers)) {
        await steps.run(read(reader));
        await steps.run(read(reader));
        expect(reader.given).toBe(newest);
      }
      expect(await versionInCache()).toBe(newest);
      expect(wentBack).toEqual([]);
      expect(await readLineage(store.sql)).toBe(keys.lineage);
    } finally {
      for (const { stream } of Object.values(readers)) stream.disconnect();
      await scheduler.waitIdle();
    }
  };
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(fc.constantFrom(...ACTS, ...RACING), { minLength: 5, maxLength: 24 }),
      history,
    ),
    {
      numRuns: runs(25),
      endOnFailure: true,
      includeErrorInReport: true,
    },
  );
});
