import { describe, expect, it } from 'vitest';
import { shared, sharedByKey } from '../../../src/ops/shared-reads.ts';

describe('a shared read', () => {
  const reads: PromiseWithResolvers<number>[] = [];
  let now = 0;
  const read = () => {
    const next = Promise.withResolvers<number>();
    reads.push(next);
    return next.promise;
  };
  const readShared = shared(read, 500, () => now);

  it('is one for simultaneous callers, and for callers shortly after', async () => {
    const answers = [readShared(), readShared()];
    reads[0]?.resolve(1);
    expect(await Promise.all(answers)).toEqual([1, 1]);
    now = 499;
    expect(await readShared()).toBe(1);
    expect(reads).toHaveLength(1);
  });

  it('is repeated later', async () => {
    now = 500;
    const answer = readShared();
    reads[1]?.resolve(2);
    expect(await answer).toBe(2);
  });

  it('is repeated after an invalidation, even if it is under way', async () => {
    now = 2000;
    const before = readShared();
    readShared.invalidate();
    const after = readShared();
    reads[3]?.resolve(4);
    expect(await after).toBe(4);
    // The older read ends last, and its value is not stored.
    reads[2]?.resolve(3);
    expect(await before).toBe(3);
    expect(await readShared()).toBe(4);
  });

  it('is repeated after a failure', async () => {
    now = 4000;
    const failing = readShared();
    reads[4]?.reject(new Error('away'));
    await expect(failing).rejects.toThrow('away');
    const answer = readShared();
    reads[5]?.resolve(6);
    expect(await answer).toBe(6);
  });
});

describe('reads that are shared by key', () => {
  const reads: string[] = [];
  const stored = sharedByKey<string, number>(500, 2, () => 0);
  const read = (key: string) =>
    stored.get(key, async () => {
      reads.push(key);
      return reads.length;
    });

  it('stay while another key is read', async () => {
    expect([await read('a'), await read('b'), await read('a')]).toEqual([1, 2, 1]);
  });

  it('are limited: a further key drops the one that was read least recently', async () => {
    expect(await read('c')).toBe(3);
    expect([await read('a'), await read('b')]).toEqual([1, 4]);
    expect(reads).toEqual(['a', 'b', 'c', 'b']);
  });

  it('are repeated after they were cleared', async () => {
    stored.clear();
    expect(await read('a')).toBe(5);
  });
});
