/** The stream of the cache loses entries under load, or another server replaces the cache. */
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { readLineage } from '../../src/db/lineage.ts';
import { CacheKeys } from '../../src/snapshot/document/keys.ts';
import { announceFeed } from '../../src/snapshot/publish/fence.ts';
import { startTestRedis, type TestRedis } from '../support/redis.ts';
import { until } from '../support/until.ts';
import { again } from './support/again.ts';
import { type Fault, type Outcome, troubles, underLoad, wrongOrNone } from './support/row.ts';
import type { Stack } from './support/stack.ts';

const keysOf = async ({ store }: Stack) => new CacheKeys(await readLineage(store.sql));

/** A client of another server that replaces the cache, with its password. */
async function clientOf(other: TestRedis, { cache }: Stack): Promise<Redis> {
  const client = new Redis(other.url);
  await client.config('SET', 'masterauth', cache.password, 'repl-diskless-sync-delay', 0);
  await client.config('SET', 'requirepass', cache.password);
  return client;
}

/** Readers and worker lose their connections, and the next ones lead to the other server. */
function replaceBy(other: TestRedis, { cacheWay, cache }: Stack): void {
  cacheWay.lead(cache.url.replace(String(cache.port), String(other.port)));
  cacheWay.cut();
}

/** Replaces the cache. @param take makes the other server ready */
async function onOther(
  fault: string,
  prepare: (other: Redis, stack: Stack) => Promise<void>,
  take: (other: Redis, stack: Stack) => Promise<void>,
): Promise<Outcome> {
  await using other = await startTestRedis();
  let client: Redis | undefined;
  const outcome = await underLoad({
    fault,
    async strike(stack, load) {
      // The publisher of the load keeps its connection to the first server.
      load.publishes = false;
      client = await clientOf(other, stack);
      await prepare(client, stack);
      await take(client, stack);
      replaceBy(other, stack);
    },
    heal() {},
  } satisfies Fault);
  client?.disconnect();
  return outcome;
}

describe('readers serve nothing wrong while', () => {
  it('the stream is deleted again and again, as an evicting cache may do', async () => {
    const outcome = await underLoad({
      fault: 'The stream of the cache is deleted each half second for {seconds}',
      ...again(500, async (stack) => stack.cacheClient.del((await keysOf(stack)).stream)),
    });
    expect(troubles(outcome.measured)).toEqual({});
  });

  it('a failover loses the end of the stream, with documents and heartbeats', async () => {
    const { measured } = await onOther(
      'The cache fails over to a replica that lacks the last second, and runs on it for {seconds}',
      async (replica, { cache }) => {
        await replica.replicaof('127.0.0.1', cache.port);
        await until(async () => (await replica.info('replication')).includes('master_link_status:up'));
      },
      async (replica, stack) => {
        await replica.replicaof('NO', 'ONE');
        const { stream } = await keysOf(stack);
        const kept = await replica.xlen(stream);
        await until(async () => (await stack.cacheClient.xlen(stream)) > kept + 10);
      },
    );
    expect(troubles(wrongOrNone(measured))).toEqual({});
  });

  it('a server takes its place whose clock is an hour behind', async () => {
    const { measured } = await onOther(
      'The cache is replaced by an empty one whose clock is an hour behind, for {seconds}',
      async (_, stack) => {
        // The ids of a stream never go back, so all later ones are an hour ahead of the clock.
        const { stream } = await keysOf(stack);
        const ahead = `${Date.now() + 3_600_000}-0`;
        await stack.cacheClient.xadd(
          stream,
          ahead,
          'mark',
          'ahead',
          'before',
          '',
          'what',
          'feed',
          'value',
          '0',
        );
        await until(async () => {
          const [last] = await stack.cacheClient.xrevrange(stream, '+', '-', 'COUNT', 1);
          return last?.[1][5] === 'heartbeat';
        });
      },
      async () => {},
    );
    expect(troubles(wrongOrNone(measured))).toEqual({});
  });

  it('a reader is frozen until the stream was trimmed', async () => {
    const outcome = await underLoad({
      fault: 'A reader is frozen for {seconds}, and the stream loses what it has not read',
      seconds: 4,
      async strike(stack) {
        const [reader] = stack.readers;
        reader?.program.child.kill('SIGSTOP');
        const keys = await keysOf(stack);
        for (let group = 0; group < 24; group++)
          await Promise.all(Array.from({ length: 500 }, () => announceFeed(stack.cacheClient, keys, group)));
      },
      heal({ readers: [reader] }) {
        reader?.program.child.kill('SIGCONT');
      },
    });
    expect(outcome.wrong).toBe(0);
    expect(outcome.lost).toBe(0);
  });
});
