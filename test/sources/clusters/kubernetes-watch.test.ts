import { describe, expect, it } from 'vitest';
import { until } from '../../support/until.ts';
import { FakeKubernetes } from './fake-kubernetes.ts';
import { BOTH, chi, pg } from './kubernetes-objects.ts';
import { PG_ONLY, Watching } from './kubernetes-watching.ts';

describe('watching a Kubernetes cluster', () => {
  it('yields the present state first, then the whole state after each change', async () => {
    await using kube = await FakeKubernetes.start({ installed: BOTH });
    kube.put(chi('a'));
    kube.put(pg('b'));
    await using watching = new Watching(kube);
    await watching.expected('a×1', 'b×1');
    await kube.watches(2);
    kube.put(pg('c', { namespace: 'globex' }));
    await watching.expected('a×1', 'b×1', 'c×1');
    kube.put(chi('a', { size: 3 }));
    await watching.expected('a×3', 'b×1', 'c×1');
    kube.remove('uid-b');
    await watching.expected('a×3', 'c×1');
    // One of them is for a kind that is not installed.
    expect(kube.count('list')).toBe(3);
    expect(kube.count('watch')).toBe(2);
  });

  it('distinguishes an object from an earlier one of the same name', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    kube.put(pg('a'));
    await using watching = new Watching(kube);
    await watching.expected('a×1');
    const again = pg('a', { size: 2 });
    kube.put({ ...again, metadata: { ...again.metadata, uid: 'uid-again' } });
    kube.remove('uid-a');
    expect(await watching.expected('a×2')).toHaveLength(1);
  });

  it('gathers simultaneous changes into one state', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    await using watching = new Watching(kube);
    await kube.watches(1);
    for (let index = 0; index < 100; index++) kube.put(pg(`db-${index}`));
    await until(() => watching.newest?.length === 100);
    expect(watching.states.length).toBeLessThan(20);
  });

  it('yields nothing for a change that affects no cluster', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    kube.put(pg('a'));
    await using watching = new Watching(kube);
    await kube.watches(1);
    kube.put({ ...pg('a'), extra: 'touched' });
    kube.put(pg('b'));
    await watching.expected('a×1', 'b×1');
    expect(watching.states).toEqual([['a×1'], ['a×1', 'b×1']]);
  });

  it('keeps an object that becomes unusable as rejected, and restores it', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    kube.put(pg('a'));
    await using watching = new Watching(kube);
    await watching.expected('a×1');
    kube.put({ ...pg('a'), spec: { storage: { size: '?' } } });
    await watching.expected('rejected');
    kube.put(pg('a', { size: 2 }));
    await watching.expected('a×2');
    expect(watching.states).toEqual([['a×1'], ['rejected'], ['a×2']]);
  });

  it('combines all kinds and namespaces into one state', async () => {
    await using kube = await FakeKubernetes.start({ installed: BOTH });
    kube.put(chi('a', { namespace: 'acme' }));
    kube.put(pg('b', { namespace: 'globex' }));
    kube.put(pg('c', { namespace: 'initech' }));
    await using watching = new Watching(kube, {}, { namespaces: 'acme,globex' });
    await watching.expected('a×1', 'b×1');
    await kube.watches(4);
    kube.put(pg('d', { namespace: 'initech' }));
    kube.put(pg('e', { namespace: 'acme' }));
    await watching.expected('a×1', 'b×1', 'e×1');
    expect(watching.states.flat()).not.toContain('d×1');
  });

  it('lists page by page before it watches', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    for (let index = 0; index < 250; index++) kube.put(pg(`db-${index}`));
    await using watching = new Watching(kube, {}, { kinds: 'cloud-native-pg' });
    await until(() => watching.newest?.length === 250);
    await kube.watches(1);
    kube.put(pg('one-more'));
    await until(() => watching.newest?.length === 251);
    expect(kube.count('list')).toBe(3);
  });
});

describe('an ended watch', () => {
  it.each(['end', 'cut'] as const)(
    'by an %s continues from the newest version, without a list and without a state',
    async (how) => {
      await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
      kube.put(pg('a'));
      await using watching = new Watching(kube, { settledMs: 0 }, { kinds: 'cloud-native-pg' });
      await kube.watches(1);
      kube.put(pg('b'));
      await watching.expected('a×1', 'b×1');
      kube[how]();
      await until(() => kube.count('watch') === 2);
      await kube.watches(1);
      expect(kube.taken.map(({ verb, query }) => [verb, query.resourceVersion])).toEqual([
        ['list', undefined],
        ['watch', '1001'],
        ['watch', '1002'],
      ]);
      expect(watching.states).toHaveLength(2);
      kube.put(pg('c'));
      await watching.expected('a×1', 'b×1', 'c×1');
    },
  );

  it('misses no change before it continues', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    kube.put(pg('a'));
    await using watching = new Watching(kube, {}, { kinds: 'cloud-native-pg' });
    await kube.watches(1);
    kube.misbehave({ verb: 'watch', status: 503 });
    kube.cut();
    kube.put(pg('b'));
    kube.remove('uid-a');
    await watching.expected('b×1');
    expect(kube.count('list')).toBe(1);
  });

  it('continues from a bookmark if no watched object changed', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    kube.put(pg('a'));
    await using watching = new Watching(kube, {}, { kinds: 'cloud-native-pg' });
    await kube.watches(1);
    const version = kube.bookmark();
    kube.compact();
    kube.put(pg('b'));
    await watching.expected('a×1', 'b×1');
    const newest = kube.bookmark();
    kube.cut();
    await until(() => kube.count('watch') === 2);
    expect(Number(newest)).toBeGreaterThan(Number(version));
    expect(kube.taken.at(-1)?.query.resourceVersion).toBe(newest);
    expect(kube.count('list')).toBe(1);
    expect(watching.states).toHaveLength(2);
  });

  it('is restarted if nothing arrives for too long', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    await using watching = new Watching(kube, { silenceMs: 40, settledMs: 0 }, { kinds: 'cloud-native-pg' });
    await until(() => kube.count('watch') >= 3);
    expect(kube.count('list')).toBe(1);
    expect(watching.failure).toBeUndefined();
    await until(() => kube.connections <= 1);
  });

  it.each(['an answer', 'an event'])('with %s of 410 lists again, and yields the result', async (how) => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    kube.put(pg('a'));
    await using watching = new Watching(kube, {}, { kinds: 'cloud-native-pg' });
    await kube.watches(1);
    if (how === 'an answer') {
      kube.compact();
      kube.cut();
    } else {
      kube.error({ code: 410, reason: 'Expired', message: 'too old resource version' });
    }
    await until(() => watching.states.length === 2);
    expect(watching.newest).toEqual(['a×1']);
    expect(kube.count('list')).toBe(2);
    await kube.watches(1);
    kube.put(pg('b'));
    await watching.expected('a×1', 'b×1');
  });

  it('finds deletions of the gap by that list', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    kube.put(pg('a'));
    kube.put(pg('b'));
    await using watching = new Watching(kube, {}, { kinds: 'cloud-native-pg' });
    await kube.watches(1);
    kube.misbehave({ verb: 'watch', status: 410 });
    kube.cut();
    kube.remove('uid-a');
    await watching.expected('b×1');
    expect(kube.count('list')).toBe(2);
  });

  it('pauses if one 410 follows another, and fails if they do not end', async () => {
    await using kube = await FakeKubernetes.start({ installed: PG_ONLY });
    for (let index = 0; index < 200; index++) kube.misbehave({ verb: 'watch', status: 410 });
    await using watching = new Watching(kube, { givesUpAfterMs: 60 }, { kinds: 'cloud-native-pg' });
    expect(await watching.fails()).toMatchObject({ kind: 'retry', message: expect.stringContaining('410') });
    expect(kube.count('watch')).toBeLessThan(20);
    kube.forgive();
  });
});
