import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { inSlices, nextTurn, Slice } from '../../src/domain/event-loop.ts';
import { countTurns } from '../support/turns.ts';

describe('long work', () => {
  it('gets one slice in each turn of the event loop, in the order of the waits', async () => {
    const order: string[] = [];
    const work = async (name: string) => {
      for (let step = 1; step <= 2; step++) {
        await nextTurn();
        order.push(`${name}${step}`);
      }
    };
    const all = [work('a'), work('b'), work('c')];
    for (let turns = 1; turns <= 3; turns++) {
      await turn();
      order.push('turn');
    }
    await Promise.all(all);
    expect(order.slice(0, 6)).toEqual(['a1', 'turn', 'b1', 'turn', 'c1', 'turn']);
    expect(order.filter((each) => each !== 'turn')).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'c2']);
  });

  it('ends a slice after its time, and begins another one with its next turn', async () => {
    const slice = new Slice(20);
    expect(slice.isOver).toBe(false);
    const until = performance.now() + 20;
    while (performance.now() < until);
    expect(slice.isOver).toBe(true);
    await slice.next();
    expect(slice.isOver).toBe(false);
  });

  it('lets other work of the event loop run between its steps, and returns its result', async () => {
    using counted = countTurns();
    const result = await inSlices(
      (function* () {
        for (let step = 0; step < 10; step++) {
          const until = performance.now() + 2;
          while (performance.now() < until);
          yield;
        }
        return 'done';
      })(),
    );
    expect(result).toBe('done');
    expect(counted.turns).toBeGreaterThanOrEqual(9);
  });
});
