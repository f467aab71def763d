// The global of this name is a getter, which takes as long as the clock itself.
import { performance } from 'node:perf_hooks';
import { Unavailable } from '../../snapshot/document/answer.ts';

/** @param next continues with the result */
export interface WithDeadline {
  <T>(work: Promise<T>): Promise<T>;
  <T, U>(work: Promise<T>, next: (value: T) => U | Promise<U>): Promise<U>;
}

interface Wait {
  /** Undefined after the wait: the set keeps what it had in memory until the next major collection. */
  reject: ((error: Unavailable) => void) | undefined;
}

/** Waits that begin within this share of the deadline share a timer: one timer each would cost too much. */
const TOGETHER = 1 / 10;

/** Limits every wait, in addition to the readers' own deadlines. @param ms milliseconds; a wait may take a tenth longer */
export function deadline(ms: number): WithDeadline {
  let open = new Set<Wait>();
  let openUntil = Number.NEGATIVE_INFINITY;

  function waiting(): Set<Wait> {
    const now = performance.now();
    if (now < openUntil) return open;
    const group = new Set<Wait>();
    open = group;
    openUntil = now + ms * TOGETHER;
    setTimeout(
      () => {
        const late = [...group];
        group.clear();
        for (const wait of late) wait.reject?.(new Unavailable(`no answer within ${ms} ms`));
      },
      ms * (1 + TOGETHER),
    ).unref();
    return group;
  }

  return <T>(work: Promise<T>, next?: (value: T) => unknown): Promise<never> =>
    new Promise((resolve: (value: never) => void, reject) => {
      const group = waiting();
      const wait: Wait = { reject };
      group.add(wait);
      work.then(
        (value) => {
          // After the deadline another answer was given.
          if (!group.delete(wait)) return;
          wait.reject = undefined;
          try {
            resolve((next ? next(value) : value) as never);
          } catch (error) {
            reject(error as Unavailable);
          }
        },
        (error: unknown) => {
          group.delete(wait);
          wait.reject = undefined;
          reject(error);
        },
      );
    });
}
