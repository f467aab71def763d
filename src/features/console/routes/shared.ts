export interface Shared<T> {
  (): Promise<T>;
  /** Something has happened: what was read, or is being read, is given to nobody who asks from now on. */
  forget(): void;
}

/**
 * One read for all who ask at the same time, and for those who ask shortly after: every open page asks again when
 * something has happened.
 * @param keepMs milliseconds for which an answer is given again
 */
export function shared<T>(read: () => Promise<T>, keepMs: number, now = () => performance.now()): Shared<T> {
  let answer: Promise<T> | undefined;
  let goodUntil = 0;
  const forget = () => {
    answer = undefined;
  };
  const ask = () => {
    if (answer !== undefined && now() < goodUntil) return answer;
    goodUntil = Number.POSITIVE_INFINITY;
    const reading = read();
    answer = reading;
    reading.then(
      () => {
        if (answer === reading) goodUntil = now() + keepMs;
      },
      () => {
        if (answer === reading) forget();
      },
    );
    return reading;
  };
  return Object.assign(ask, { forget });
}
