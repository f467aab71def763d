/** Rejects the answer to another query: a connection that mixes answers must never show one organization's data to another. */
export function checkKey<T>(found: T, requested: T): void {
  if (found !== requested) throw new Error('PostgreSQL returned the answer to another query');
}
