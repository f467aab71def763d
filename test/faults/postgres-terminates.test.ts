import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { expect, it } from 'vitest';
import { troubles, underLoad, wrongOrNone } from './support/row.ts';

const EVERY_MS = 100;

it('no answer is lost while PostgreSQL ends all connections repeatedly', async () => {
  await using striking = new AsyncDisposableStack();
  const outcome = await underLoad({
    fault: 'PostgreSQL ends every connection, ten times a second, for {seconds}',
    strike({ postgres: server }) {
      const sql = postgres(server.url, { max: 1, fetch_types: false, onnotice: () => {} });
      let isOver = false;
      const ending = (async () => {
        while (!isOver) {
          await sql`select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid()`;
          await sleep(EVERY_MS);
        }
      })();
      striking.defer(async () => {
        isOver = true;
        await ending;
        await sql.end({ timeout: 5 });
      });
    },
    heal: () => striking.disposeAsync(),
  });
  expect(troubles(wrongOrNone(outcome.measured))).toEqual({});
});
