import { describe, expect, it } from 'vitest';
import { ReplicaFence } from '../../../../src/features/replica/fence.ts';

describe('what a replica may answer', () => {
  it('is not older than what was heard of, until it is known to have that', () => {
    const fence = new ReplicaFence(0);
    expect(fence.version('region:1', 3)).toBe(true);
    fence.heard('region:1', 4, 100);
    expect([3, 4, 5, undefined].map((version) => fence.version('region:1', version))).toEqual([
      false,
      true,
      true,
      false,
    ]);
    fence.lookedAtPrimary(99, 10n);
    fence.lookedAtReplica(10n);
    expect(fence.version('region:1', 3)).toBe(false);
    fence.lookedAtPrimary(101, 20n);
    fence.lookedAtReplica(19n);
    expect(fence.version('region:1', 3)).toBe(false);
    fence.lookedAtReplica(20n);
    expect(fence.coveredTo).toBe(101);
    expect(fence.version('region:1', 3)).toBe(true);
  });

  it('an older message takes nothing back', () => {
    const fence = new ReplicaFence(0);
    fence.heard('clusters:1', 7, 1);
    fence.heard('clusters:1', 6, 2);
    expect(fence.version('clusters:1', 6)).toBe(false);
  });

  it('has the time of no reading that it may lack', () => {
    const fence = new ReplicaFence(0);
    expect(fence.stamps([])).toBe(true);
    fence.heardStamp('cloud/3', 'catalogue 2026-01-02T00:00:00.000Z', 10);
    expect([fence.stamps(['cloud/3']), fence.stamps(['cloud/4']), fence.stamps([])]).toEqual([
      false,
      true,
      false,
    ]);
    fence.lookedAtPrimary(10, 5n);
    fence.lookedAtReplica(5n);
    expect(fence.stamps(['cloud/3'])).toBe(true);
  });

  it('has what was read by a time that it names itself', () => {
    const fence = new ReplicaFence(0);
    fence.heardStamp('cloud', 'catalogue 2026-01-02T00:00:00.000Z', 10);
    fence.hasStamps(new Map([['cloud', 'catalogue 2026-01-01T00:00:00.000Z']]));
    expect(fence.lacksStamps).toBe(true);
    fence.hasStamps(new Map([['cloud', 'catalogue 2026-01-02T00:00:00.000Z']]));
    expect([fence.lacksStamps, fence.stamps(['cloud'])]).toEqual([false, true]);
  });

  it('covers a gap only with a look from after it', () => {
    const fence = new ReplicaFence(50);
    fence.lookedAtPrimary(49, 1n);
    fence.lookedAtReplica(9n);
    expect(fence.coversGap).toBe(false);
    fence.lookedAtPrimary(50, 2n);
    fence.lookedAtReplica(9n);
    expect(fence.coversGap).toBe(true);
    fence.heardAll(60);
    expect(fence.coversGap).toBe(false);
  });

  it('is nothing while more was heard of than is remembered', () => {
    const fence = new ReplicaFence(0);
    for (let id = 0; id <= 50_000; id++) fence.heard(`token:${id}`, 1, 1);
    expect(fence.isFull).toBe(true);
    fence.lookedAtPrimary(2, 1n);
    fence.lookedAtReplica(1n);
    expect(fence.isFull).toBe(false);
  });
});
