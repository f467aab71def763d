import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { type ClusterAdapter, type ClusterItem, SourceError } from '../../src/sources/source.ts';
import { pauseAfter, type WatchedSource, watchSource } from '../../workers/watched-source.ts';
import { until } from '../support/until.ts';
import { planeSource } from './plane.ts';

const silent = pino({ level: 'silent' });

const state = (key: string): ClusterItem[] => [{ kind: 'rejected', key, reason: 'r' }];
const numberOf = (items: readonly ClusterItem[]) =>
  items.map((item) => ('key' in item ? item.key : '')).join();

/** A source whose adapter watches like this. */
const sourceOf = (watch: NonNullable<ClusterAdapter['watch']>) => {
  const source = planeSource('http://127.0.0.1:1');
  return { ...source, adapter: { ...source.adapter, watch } };
};

interface Scene {
  readonly stored: string[];
  readonly pauses: number[];
  readonly failures: unknown[];
}

function watched(
  watch: NonNullable<ClusterAdapter['watch']>,
  store: (name: string) => Promise<'changed' | 'held' | 'superseded'> = async () => 'changed',
): WatchedSource & Scene {
  const scene: Scene = { stored: [], pauses: [], failures: [] };
  return {
    ...scene,
    source: sourceOf(watch),
    logger: silent,
    ready: async () => true,
    async store(items) {
      scene.stored.push(numberOf(items));
      return store(numberOf(items));
    },
    async failed(error) {
      scene.failures.push(error);
    },
    async pause(ms) {
      scene.pauses.push(ms);
      // Lets all other work run, as a pause does.
      await new Promise((resolve) => setImmediate(resolve));
    },
    random: () => 1,
  };
}

/** Waits for the signal, as a watch without changes does. */
const silence = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

describe('watched states', () => {
  it('accumulate while one is stored, and only the newest of them is stored after it', async () => {
    const slow = Promise.withResolvers<void>();
    const all = Promise.withResolvers<void>();
    const end = new AbortController();
    const scene = watched(
      async function* ({ signal }) {
        yield state('1');
        await until(() => scene.stored.length === 1);
        for (const next of ['2', '3', '4']) yield state(next);
        all.resolve();
        await silence(signal);
      },
      async () => {
        await slow.promise;
        return 'changed';
      },
    );
    const watching = watchSource(scene, end.signal);
    await all.promise;
    slow.resolve();
    await until(() => scene.stored.length === 2);
    end.abort();
    await watching;
    expect(scene.stored).toEqual(['1', '4']);
    expect([scene.failures, scene.pauses]).toEqual([[], []]);
  });

  it('are stored again if a run overtook them, or the newer one is', async () => {
    const end = new AbortController();
    const outcomes = ['superseded', 'superseded', 'changed'] as const;
    let call = 0;
    const scene = watched(
      async function* ({ signal }) {
        yield state('1');
        await until(() => scene.stored.length >= 2);
        yield state('2');
        await silence(signal);
      },
      async () => outcomes[call++] ?? 'changed',
    );
    const watching = watchSource(scene, end.signal);
    await until(() => scene.stored.includes('2'));
    end.abort();
    await watching;
    expect(scene.stored.slice(0, 2)).toEqual(['1', '1']);
    expect(scene.pauses.every((ms) => ms <= 200)).toBe(true);
  });
});

describe('a watch', () => {
  it('is restarted if it fails or ends, after a growing pause, until a state is stored', async () => {
    const end = new AbortController();
    let begun = 0;
    const scene = watched(async function* ({ signal }) {
      begun += 1;
      if (begun === 3) return;
      if (begun <= 4) throw new SourceError('retry', `failure ${begun}`);
      yield state('1');
      await until(() => scene.stored.length > 0);
      if (begun === 5) throw new SourceError('retry', 'once more');
      await silence(signal);
    });
    const watching = watchSource(scene, end.signal);
    await until(() => begun === 6 && scene.stored.length === 2);
    end.abort();
    await watching;
    expect(scene.pauses).toEqual([1000, 2000, 4000, 8000, 1000]);
    expect(scene.failures.map((failure) => (failure as Error).message)).toEqual([
      'failure 1',
      'failure 2',
      'the watch ended without a request',
      'failure 4',
      'once more',
    ]);
  });

  it('that fails has its last unstored state stored first', async () => {
    const end = new AbortController();
    const scene = watched(async function* () {
      yield state('1');
      throw new SourceError('retry', 'gone');
    });
    const watching = watchSource(scene, end.signal);
    await until(() => scene.failures.length > 0);
    end.abort();
    await watching;
    expect(scene.stored[0]).toBe('1');
  });

  it('is restarted if a state cannot be stored', async () => {
    const end = new AbortController();
    let calls = 0;
    const scene = watched(
      async function* ({ signal }) {
        yield state('1');
        await silence(signal);
      },
      async () => {
        calls += 1;
        if (calls === 1) throw new Error('the database is away');
        return 'changed';
      },
    );
    const watching = watchSource(scene, end.signal);
    await until(() => scene.stored.length === 2);
    end.abort();
    await watching;
    // The failed run has recorded its error.
    expect(scene.failures).toEqual([]);
    expect(scene.pauses).toEqual([1000]);
  });

  it('pauses for as long as its upstream requires, at most an hour', () => {
    const pauseError = (retryAfterMs: number) => new SourceError('retry', 'later', { retryAfterMs });
    expect(pauseAfter(pauseError(30_000), 0, () => 0)).toBe(30_000);
    expect(pauseAfter(pauseError(1), 3, () => 0)).toBe(4000);
    expect(pauseAfter(pauseError(1e9), 0, () => 0)).toBe(3_600_000);
    expect(pauseAfter(new Error('x'), 0, () => 0)).toBe(500);
    expect(pauseAfter(new Error('x'), 1000, () => 1)).toBe(60_000);
  });
});
