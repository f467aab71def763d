import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openRedis, type RedisClient, redisReady } from '../../../src/redis/redis.ts';
import { regionContent } from '../../../src/snapshot/document/build.ts';
import { encodeDocument, parseHeader } from '../../../src/snapshot/document/format.ts';
import { CacheKeys, type DocumentName } from '../../../src/snapshot/document/keys.ts';
import { moveStamps, setIfNewer, withFence } from '../../../src/snapshot/publish/fence.ts';
import { runs } from '../../support/random.ts';
import { startTestRedis, type TestRedis } from '../../support/redis.ts';

const NAME = { kind: 'region', regionId: 7 } as const satisfies DocumentName;

async function encodedVersion(version: number): Promise<Buffer> {
  const head = { id: 7, version, name: 'r', code: 'r', provider: { id: 1, name: 'p' } };
  const value = await encodeDocument(regionContent(head, [], { sources: [] }));
  return value;
}

describe('the fence', () => {
  let redis: TestRedis;
  let a: RedisClient;
  let b: RedisClient;
  let keys: CacheKeys;

  const publish = (version: number, by = a) =>
    encodedVersion(version).then((value) => setIfNewer(by, keys, NAME, version, value));
  const writeBack = (version: number, by = a) =>
    encodedVersion(version).then((value) => setIfNewer(by, keys, NAME, version, value, 60));
  const stored = async () => {
    const value = await a.getBuffer(keys.document(NAME));
    return value ? parseHeader(value)?.version : undefined;
  };
  const secondsLeft = () => a.ttl(keys.document(NAME));

  beforeAll(async () => {
    redis = await startTestRedis();
    const open = () => withFence(openRedis(redis.url, 'publisher', () => {}));
    [a, b] = [open(), open()];
    for (const connection of [a, b]) await redisReady(connection, 5000);
  });
  afterAll(async () => {
    for (const connection of [a, b]) connection.disconnect();
    await redis[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    keys = new CacheKeys(randomUUID());
  });

  it('keeps the newest version for any order of writes by publishers and readers on several connections', async () => {
    const write = fc.record({
      version: fc.integer({ min: 1, max: 9 }),
      isWriteBack: fc.boolean(),
      by: fc.constantFrom('a', 'b'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(write, { minLength: 1, maxLength: 12 }), async (writes) => {
        keys = new CacheKeys(randomUUID());
        const results = await Promise.all(
          writes.map(({ version, isWriteBack, by }) =>
            (isWriteBack ? writeBack : publish)(version, by === 'a' ? a : b),
          ),
        );
        const newest = Math.max(...writes.map(({ version }) => version));
        expect(await stored()).toBe(newest);
        expect(await a.xlen(keys.stream)).toBe(results.filter(Boolean).length);
        const published = writes.some(({ version, isWriteBack }) => version === newest && !isWriteBack);
        expect((await secondsLeft()) === -1).toBe(published);
      }),
      { numRuns: runs(60) },
    );
  });

  it('compares versions as numbers, up to the largest safe integer', async () => {
    expect(await publish(9)).toBe(true);
    expect(await publish(10)).toBe(true);
    expect(await publish(9)).toBe(false);
    expect(await publish(Number.MAX_SAFE_INTEGER - 1)).toBe(true);
    expect(await publish(Number.MAX_SAFE_INTEGER)).toBe(true);
    expect(await publish(Number.MAX_SAFE_INTEGER - 1)).toBe(false);
  });

  it('appends an entry when it writes, and only then', async () => {
    await publish(5);
    await publish(4);
    await writeBack(5);
    await writeBack(6);
    const entries = await a.xrange(keys.stream, '-', '+');
    expect(entries.map(([, fields]) => fields.slice(4))).toEqual([
      ['what', 'region:7', 'value', '5'],
      ['what', 'region:7', 'value', '6'],
    ]);
  });

  it('lets a reader’s write-back expire until the publisher confirms that version', async () => {
    await writeBack(3);
    expect(await secondsLeft()).toBeGreaterThan(50);
    expect(await secondsLeft()).toBeLessThanOrEqual(60);
    expect(await publish(3)).toBe(false);
    expect(await secondsLeft()).toBe(-1);
  });

  it('puts no expiry on a published value through a write-back of the same version', async () => {
    await publish(3);
    expect(await writeBack(3)).toBe(false);
    expect(await secondsLeft()).toBe(-1);
  });

  it('keeps the expiry of a write-back over an older publication', async () => {
    await publish(3);
    await writeBack(4);
    expect(await secondsLeft()).toBeGreaterThan(50);
    await publish(4);
    expect(await secondsLeft()).toBe(-1);
  });

  it('never replaces an unknown format by a write-back, and always by a publication', async () => {
    for (const unknown of ['FB3 0000000000000001 whatever', 'x', 'FB', 'FB20000']) {
      await a.set(keys.document(NAME), unknown);
      expect(await writeBack(9)).toBe(false);
      expect(await a.get(keys.document(NAME))).toBe(unknown);
      expect(await publish(1)).toBe(true);
      expect(await stored()).toBe(1);
    }
  });

  it('treats a value with an unreadable version as absent', async () => {
    await a.set(keys.document(NAME), `FB2 not-a-number-at-al`);
    expect(await writeBack(2)).toBe(true);
    expect(await stored()).toBe(2);
  });

  it('accepts a late write-back after a flush for a while, and then only newer versions', async () => {
    await publish(8);
    await a.flushall();
    expect(await writeBack(7)).toBe(true);
    expect(await secondsLeft()).toBeGreaterThan(0);
    expect(await publish(8)).toBe(true);
    expect(await stored()).toBe(8);
    expect(await secondsLeft()).toBe(-1);
  });

  it('moves the stamp forward and never back', async () => {
    const at = (time: string) => moveStamps(a, keys, new Map([['hetzner', `catalogue ${time}`]]));
    await at('2026-01-01T00:00:00.000Z');
    await at('2025-12-31T23:59:59.999Z');
    await at('2026-01-01T00:00:00.001Z');
    expect(await a.hgetall(keys.stamps)).toEqual({ hetzner: 'catalogue 2026-01-01T00:00:00.001Z' });
    const entries = await a.xrange(keys.stream, '-', '+');
    expect(entries.map(([, fields]) => fields.slice(4))).toEqual(
      ['00', '01'].map((end) => [
        'what',
        'stamps',
        'value',
        `[["hetzner","catalogue 2026-01-01T00:00:00.0${end}Z"]]`,
      ]),
    );
  });
});
