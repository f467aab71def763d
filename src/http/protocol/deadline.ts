import { Unavailable } from '../../snapshot/document/answer.ts';

export type WithDeadline = <T>(work: Promise<T>) => Promise<T>;

type Reject = (error: Unavailable) => void;

/** Waits that begin within this share of the deadline share a timer: one timer each would cost too much. */
const TOGETHER = 1 / 10;

/** Limits every wait, in addition to the readers' own deadlines. @param ms milliseconds; a wait may take a tenth longer */
export function deadline(ms: number): WithDeadline {
  let open = new Set<Reject>();
  let openUntil = Number.NEGATIVE_INFINITY;

  function waiting(): Set<Reject> {
    const now = performance.now();
    if (now < openUntil) return open;
    const group = new Set<Reject>();
    open = group;
    openUntil = now + ms * TOGETHER;
    setTimeout(
      () => {
        for (const reject of group) reject(new Unavailable(`no answer within ${ms} ms`));
      },
      ms * (1 + TOGETHER),
    ).unref();
    return group;
  }

  return (work) =>
    new Promise((resolve, reject) => {
      const group = waiting();
      group.add(reject);
      work.then(
        (value) => {
          group.delete(reject);
          resolve(value);
        },
        (error: unknown) => {
          group.delete(reject);
          reject(error);
        },
      );
    });
}
