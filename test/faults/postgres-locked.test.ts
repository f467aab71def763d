import postgres from 'postgres';
import { expect, it } from 'vitest';
import { troubles, underLoad, wrongOrNone } from './support/row.ts';

it('memory and Redis answer during a lock on all machines', async () => {
  await using held = new AsyncDisposableStack();
  const outcome = await underLoad({
    fault: 'A client holds an exclusive lock on the table of machines for {seconds}',
    async strike({ postgres: server }) {
      const sql = postgres(server.url, { max: 1, fetch_types: false, onnotice: () => {} });
      held.defer(() => sql.end({ timeout: 5 }));
      const { promise, resolve } = Promise.withResolvers<void>();
      const { promise: taken, resolve: isTaken } = Promise.withResolvers<void>();
      const holding = sql.begin(async (locking) => {
        await locking`lock table machines in access exclusive mode`;
        isTaken();
        await promise;
      });
      held.defer(async () => {
        resolve();
        await holding;
      });
      await taken;
    },
    heal: () => held.disposeAsync(),
  });
  expect(troubles(wrongOrNone(outcome.measured))).toEqual({});
});
