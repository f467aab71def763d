/** What a reader states about its link to the cache: to probes, and to Prometheus. */
import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { composeReader } from '../../src/app/reader.ts';
import { readConfig } from '../../src/config/config.ts';
import { startHeartbeat } from '../../src/snapshot/publish/publisher.ts';
import { sceneForEachTest } from '../snapshot/scene.ts';
import { until } from '../support/until.ts';

const scene = sceneForEachTest({ redis: 'of the test' });

/** Opens a reader whose user of the cache has all rights. */
async function openReader() {
  const { cache, db, redis } = scene;
  const name = `reader-${randomUUID()}`;
  const allow = (...rights: string[]) => cache.call('ACL', 'SETUSER', name, ...rights);
  await allow('on', `>${redis.password}`, '~*', '+@all');
  const url = new URL(redis.url);
  url.username = name;
  const logged: string[] = [];
  const settings = { DATABASE_URL: db.url, CACHE_REDIS_URL: url.href, QUEUE_REDIS_URL: redis.url };
  const reader = await composeReader(
    readConfig(settings),
    pino({ level: 'warn' }, { write: (line) => logged.push(line) }),
  );
  const registry = new Registry();
  await reader.addMetrics(registry);
  const states = async () => {
    const { checks } = await reader.readiness();
    const metrics = await registry.getSingleMetricAsString('fleetbook_reader_linked');
    return [checks.cache, /^fleetbook_reader_linked (\d)$/m.exec(metrics)?.[1]];
  };
  return { allow, logged, states, [Symbol.asyncDispose]: () => reader[Symbol.asyncDispose]() };
}

it('a reader states why it is not linked: it cannot read the stream, or no worker reaches the cache', async () => {
  await scene.publisher.publishDirty();
  await using reader = await openReader();
  const stated = async (...expected: string[]) => {
    const states = await until(async () => {
      const now = await reader.states();
      return now[0] === expected[0] && now;
    });
    expect(states).toEqual(expected);
  };
  await stated('not linked: no worker reaches it', '0');
  {
    using _heartbeat = startHeartbeat(() => scene.publisher.heartbeat());
    await stated('ok', '1');
    await reader.allow('-xread');
    await stated('not linked: this reader cannot read it', '0');
    expect(reader.logged.join('')).toMatch(/NOPERM.*the stream of the cache cannot be read/);
    await reader.allow('+xread');
    await stated('ok', '1');
  }
  await stated('not linked: no worker reaches it', '0');
  await scene.redis.kill();
  await stated('not linked: this reader cannot read it', '0');
});
