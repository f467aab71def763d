import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from './row.ts';
import type { Stack } from './stack.ts';

/** Repeats an action for the duration of a fault. @param everyMs milliseconds between two times */
export function again(
  everyMs: number,
  act: (stack: Stack) => Promise<unknown>,
): Pick<Fault, 'strike' | 'heal'> {
  const over = new AbortController();
  let acting: Promise<void> | undefined;
  return {
    strike(stack) {
      acting = (async () => {
        while (!over.signal.aborted) {
          await act(stack);
          await sleep(everyMs);
        }
      })();
      // The heal reports the error.
      acting.catch(() => {});
    },
    async heal() {
      over.abort();
      await acting;
    },
  };
}
