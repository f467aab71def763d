import { Unavailable } from '../../snapshot/document/answer.ts';

/** Waits for this as long as is allowed, and no longer. @throws Unavailable */
export type WithinTime = <T>(work: Promise<T>) => Promise<T>;

type Reject = (error: Unavailable) => void;

/** Waits that begin within this share of their time have a timer together: it costs more than what is waited for. */
const TOGETHER = 1 / 10;

/**
 * Readers keep deadlines of their own; a client must not hang on one that fails to.
 * @param ms milliseconds; a tenth more at the most
 */
export function withinTime(ms: number): WithinTime {
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
