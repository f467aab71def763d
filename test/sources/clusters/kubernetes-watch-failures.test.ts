import { describe, expect, it } from 'vitest';
import { until } from '../../support/until.ts';
import { FakeKubernetes } from './fake-kubernetes.ts';
import { BOTH, chi, pg } from './kubernetes-objects.ts';
import { PG_ONLY, Watching, watchOf } from './kubernetes-watching.ts';

describe('a failing watch', () => {
  it('waits as long as a 429 requires', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    kube.misbehave({ verb: 'watch', status: 429, headers: { 'retry-after': '1' } });
    const began = performance.now();
    await using watching = new Watching(kube, {}, { kinds: 'cloud-native-pg' });
    await kube.watches(1);
    expect(performance.now() - began).toBeGreaterThanOrEqual(990);
    expect(watching.states).toEqual([[]]);
  });

  it('passes a longer wait on to its owner', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    kube.misbehave({ verb: 'watch', status: 429, headers: { 'retry-after': '600' } });
    await using watching = new Watching(kube);
    expect(await watching.fails()).toMatchObject({ kind: 'retry', retryAfterMs: 600_000 });
  });

  it('retries after an error event', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    await using watching = new Watching(kube, {}, { kinds: 'cloud-native-pg' });
    await kube.watches(1);
    kube.error({ code: 500, message: 'etcd is unwell' });
    await until(() => kube.count('watch') === 2);
    await kube.watches(1);
    kube.put(pg('a'));
    await watching.expected('a×1');
    expect(kube.count('list')).toBe(1);
  });

  it('retries for a while, and then fails with the last error', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    for (let index = 0; index < 100; index++) kube.misbehave({ verb: 'watch', status: 503 });
    // A busy machine takes a tenth of a second for a watch.
    const slow = { firstPauseMs: 40, longestPauseMs: 200, givesUpAfterMs: 800 };
    await using watching = new Watching(kube, slow, { kinds: 'cloud-native-pg' });
    expect(await watching.fails()).toMatchObject({ kind: 'retry', message: expect.stringContaining('503') });
    expect(kube.count('watch')).toBeGreaterThan(2);
    expect(kube.count('watch')).toBeLessThan(40);
    kube.forgive();
  });

  it('does not loop with a server that ends each watch at once', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    await using watching = new Watching(kube, { givesUpAfterMs: 80 }, { kinds: 'cloud-native-pg' });
    const ending = setInterval(() => kube.end(), 1);
    try {
      expect(await watching.fails()).toMatchObject({
        kind: 'retry',
        message: expect.stringContaining('at once'),
      });
    } finally {
      clearInterval(ending);
    }
    expect(kube.count('watch')).toBeLessThan(40);
  });

  it.each([
    [403, 'misconfigured', 'watch clusters.postgresql.cnpg.io'],
    [400, 'invalid', '400'],
  ] as const)('at a %d fails as %s, at once', async (status, kind, message) => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    kube.misbehave({ verb: 'watch', status });
    await using watching = new Watching(kube, {}, { kinds: 'cloud-native-pg' });
    expect(await watching.fails()).toMatchObject({
      name: 'SourceError',
      kind,
      message: expect.stringContaining(message),
    });
  });

  it('at a 401 reads its credentials again, and fails if they are rejected again', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    kube.misbehave({ verb: 'watch', status: 401 });
    await using watching = new Watching(kube, {}, { kinds: 'cloud-native-pg' });
    await kube.watches(1);
    expect(kube.count('watch')).toBe(2);
    kube.misbehave({ verb: 'watch', status: 401 });
    kube.misbehave({ verb: 'watch', status: 401 });
    kube.cut();
    expect(await watching.fails()).toMatchObject({
      kind: 'misconfigured',
      message: expect.stringContaining('credentials'),
    });
  });

  it.each([
    ['not JSON', 'no JSON\n'],
    ['not an event', '{"type":"ADDED"}\n'],
    ['an event without a version', '{"type":"MODIFIED","object":{"metadata":{"name":"a"}}}\n'],
    ['an event of another protocol', '{"type":"RENAMED","object":{"metadata":{"resourceVersion":"1"}}}\n'],
  ])('at a line that is %s fails as invalid', async (_, line) => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    await using watching = new Watching(kube, {}, { kinds: 'cloud-native-pg' });
    await kube.watches(1);
    kube.raw(line);
    expect(await watching.fails()).toMatchObject({ name: 'SourceError', kind: 'invalid' });
  });

  it('ends the other kinds’ watches too', async () => {
    await using kube = await FakeKubernetes.start({ installed: BOTH });
    await using watching = new Watching(kube);
    await kube.watches(2);
    kube.misbehave({ verb: 'watch', status: 403 });
    kube.cut();
    await watching.fails();
    await until(() => kube.connections === 0);
    expect(watching.ended).toBe(false);
  });

  it('retries a list that fails after a 410, and keeps the earlier state until then', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    kube.put(pg('a'));
    await using watching = new Watching(kube, {}, { kinds: 'cloud-native-pg' });
    await kube.watches(1);
    kube.misbehave({ verb: 'list', status: 503 });
    kube.misbehave({ verb: 'list', status: 0, cut: true });
    kube.compact();
    kube.cut();
    kube.put(pg('b'));
    await watching.expected('a×1', 'b×1');
    expect(watching.states).toEqual([['a×1'], ['a×1', 'b×1']]);
    expect(kube.count('list')).toBe(4);
  });

  it('fails at once if the first list fails', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    kube.misbehave({ verb: 'list', status: 503 });
    await using watching = new Watching(kube);
    expect(await watching.fails()).toMatchObject({ kind: 'retry' });
    expect(watching.states).toEqual([]);
  });
});

describe('a kind that is not installed', () => {
  it('is found when it is installed later', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    kube.put(pg('a'));
    await using watching = new Watching(kube, { absentMs: 10 });
    await watching.expected('a×1');
    kube.put(chi('b'));
    kube.install('clickhouse.altinity.com/v1', 'clickhouseinstallations');
    await watching.expected('a×1', 'b×1');
    await kube.watches(2);
    expect(watching.states).toEqual([['a×1'], ['a×1', 'b×1']]);
  });

  it('cannot be watched alone', async () => {
    await using kube = await FakeKubernetes.start({ installed: {} });
    await using watching = new Watching(kube);
    expect(await watching.fails()).toMatchObject({ kind: 'gone' });
    expect(watching.states).toEqual([]);
  });

  it.each(['watch', 'list'] as const)(
    'any more is a failure, found by a %s, not a deletion',
    async (verb) => {
      await using kube = await FakeKubernetes.start({ installed: BOTH });
      kube.put(chi('a'));
      await using watching = new Watching(kube);
      await kube.watches(2);
      kube.uninstall('clickhouse.altinity.com/v1');
      if (verb === 'list') kube.compact();
      kube.cut();
      expect(await watching.fails()).toMatchObject({ kind: 'gone' });
      expect(watching.states.every((state) => state.includes('a×1'))).toBe(true);
    },
  );
});

describe('the end of a watch', () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

  it('follows the signal, and leaves neither connection nor timer', async () => {
    await using kube = await FakeKubernetes.start({ installed: BOTH });
    kube.put(chi('a'));
    const before = timers();
    const watching = new Watching(kube);
    await kube.watches(2);
    await watching.stop();
    expect(watching.ended).toBe(true);
    expect(watching.failure).toBeUndefined();
    await until(() => kube.connections === 0);
    expect(timers()).toBeLessThanOrEqual(before);
  });

  it('also comes during a pause, a list or a wait for a kind', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    const before = timers();
    kube.misbehave({ verb: 'watch', status: 503 });
    const pausing = new Watching(kube, {
      firstPauseMs: 60_000,
      longestPauseMs: 60_000,
      givesUpAfterMs: 100_000,
    });
    await until(() => kube.count('watch') === 1);
    await pausing.stop();
    expect(pausing.ended).toBe(true);
    const early = new Watching(kube);
    await early.stop();
    expect([early.ended, early.states]).toEqual([true, []]);
    await until(() => kube.connections === 0);
    expect(timers()).toBeLessThanOrEqual(before);
  });

  it('comes at once if its reader stops', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    kube.put(pg('a'));
    for await (const items of watchOf(kube, new AbortController().signal)) {
      expect(items).toHaveLength(1);
      break;
    }
    await until(() => kube.connections === 0);
  });
});
