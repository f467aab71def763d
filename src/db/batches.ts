/** A statement of postgres.js. */
interface CursorQuery<Row> {
  cursor(size: number, take: (rows: Row[]) => unknown): Promise<unknown>;
}

/**
 * Yields the rows of a statement in batches of a size. It fails when the connection is lost. If the consumer stops early, the
 * rest is read and dropped.
 *
 * The iterator of postgres.js 3.4 has two defects. A connection that is lost between two batches ends it as if all rows had
 * come. In a transaction it also asks the lost connection for more rows, and this ends the process.
 */
export async function* inBatches<Row>(query: CursorQuery<Row>, size: number): AsyncGenerator<Row[], void> {
  let arrived = Promise.withResolvers<Row[] | undefined>();
  let goOn: (() => void) | undefined;
  let hasStopped = false;
  let end: { readonly failure?: unknown } | undefined;
  query
    .cursor(size, (rows) => {
      if (hasStopped) return undefined;
      arrived.resolve(rows);
      return new Promise<void>((resolve) => {
        goOn = resolve;
      });
    })
    .then(
      () => {
        end = {};
        arrived.resolve(undefined);
      },
      (failure: unknown) => {
        end = { failure };
        arrived.reject(failure);
      },
    );
  try {
    for (;;) {
      const rows = await arrived.promise;
      if (rows === undefined) return;
      arrived = Promise.withResolvers();
      // A failure between two batches is thrown below.
      arrived.promise.catch(() => {});
      yield rows;
      if (end && 'failure' in end) throw end.failure;
      goOn?.();
    }
  } finally {
    hasStopped = true;
    // Nothing may be sent on a lost connection.
    if (!end) goOn?.();
  }
}
