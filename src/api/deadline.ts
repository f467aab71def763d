import { Unavailable } from '../snapshot/answer.ts';

/**
 * Waits so long and no longer: readers keep deadlines of their own, and a client must not hang on one that fails to.
 * @throws Unavailable after `ms` milliseconds
 */
export function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const timer = setTimeout(() => reject(new Unavailable(`no answer within ${ms} ms`)), ms);
  work.then(resolve, reject).finally(() => clearTimeout(timer));
  return promise;
}
