import postgres from 'postgres';
import { expect, it } from 'vitest';
import { troubles, underLoad, wrongOrNone } from './support/row.ts';
import type { Stack } from './support/stack.ts';

it('memory and Redis answer while PostgreSQL has no connection left, and all goes on when it has', async () => {
  await using taken = new AsyncDisposableStack();
  const outcome = await underLoad({
    fault: 'PostgreSQL has no connection left for {seconds}',
    async strike({ postgres: server, database }: Stack) {
      // Everybody else is cut off first, and finds it full when he comes again.
      await database.refuse();
      await takeAll(server.url, taken);
      await database.heal();
    },
    heal: () => taken.disposeAsync(),
  });
  expect(troubles(wrongOrNone(outcome.asked))).toEqual({});
});

/** Connects until the server takes nobody any more. */
async function takeAll(url: string, taken: AsyncDisposableStack): Promise<void> {
  for (;;) {
    const sql = postgres(url, { max: 1, onnotice: () => {} });
    taken.defer(() => sql.end({ timeout: 5 }));
    try {
      await sql`select 1`;
    } catch (error) {
      expect(error).toMatchObject({ code: '53300' });
      return;
    }
  }
}
