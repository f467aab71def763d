import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from './row.ts';
import type { Stack } from './stack.ts';

/** A fault that is done again and again for as long as it lasts. @param everyMs milliseconds between two times */
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
      // Told when it is healed.
      acting.catch(() => {});
    },
    async heal() {
      over.abort();
      await acting;
    },
  };
}
