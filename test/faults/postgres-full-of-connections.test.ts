import postgres from 'postgres';
import { expect, it } from 'vitest';
import { troubles, underLoad, wrongOrNone } from './support/row.ts';
import type { Stack } from './support/stack.ts';

it('memory and Redis answer while PostgreSQL has no free connection, and all recovers after that', async () => {
  await using taken = new AsyncDisposableStack();
  const outcome = await underLoad({
    fault: 'PostgreSQL has no connection left for {seconds}',
    async strike({ postgres: server, database }: Stack) {
      // All other clients are cut off first, and cannot reconnect.
      await database.refuse();
      await takeAll(server.url, taken);
      await database.heal();
    },
    heal: () => taken.disposeAsync(),
  });
  expect(troubles(wrongOrNone(outcome.measured))).toEqual({});
});

async function takeAll(url: string, taken: AsyncDisposableStack): Promise<void> {
  for (;;) {
    const sql = postgres(url, { max: 1, fetch_types: false, onnotice: () => {} });
    taken.defer(() => sql.end({ timeout: 5 }));
    try {
      await sql`select 1`;
    } catch (error) {
      expect(error).toMatchObject({ code: '53300' });
      return;
    }
  }
}
