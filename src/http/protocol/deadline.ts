import { Unavailable } from '../../snapshot/document/answer.ts';

/** The same promise, which rejects with `Unavailable` when it takes too long. */
export type WithDeadline = <T>(work: Promise<T>) => Promise<T>;

type Reject = (error: Unavailable) => void;

/** Waits that begin within this share of the time share a timer: a timer each would cost more than the work. */
const TOGETHER = 1 / 10;

/**
 * A last deadline, beyond those that readers keep: no client waits for ever.
 * @param ms milliseconds, and a tenth more at most
 */
export function deadline(ms: number): WithDeadline {
  let open = new Set<Reject>();
  let openUntil = Number.NEGATIVE_INFINITY;

  function waiting(): Set<Reject> {
    const now = performance.now();
    if (now < openUntil) return open;
    const those = new Set<Reject>();
    open = those;
    openUntil = now + ms * TOGETHER;
    setTimeout(
      () => {
        for (const reject of those) reject(new Unavailable(`no answer within ${ms} ms`));
      },
      ms * (1 + TOGETHER),
    ).unref();
    return those;
  }

  return (work) =>
    new Promise((resolve, reject) => {
      const those = waiting();
      those.add(reject);
      work.then(
        (value) => {
          those.delete(reject);
          resolve(value);
        },
        (error: unknown) => {
          those.delete(reject);
          reject(error);
        },
      );
    });
}
