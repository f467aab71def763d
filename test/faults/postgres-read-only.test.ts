import { expect, it } from 'vitest';
import { run } from '../support/postgres.ts';
import { troubles, underLoad, wrongOrNone } from './support/row.ts';

it('reads continue while PostgreSQL is read only, and writes after that', async () => {
  const outcome = await underLoad({
    fault: 'PostgreSQL is read only for {seconds}',
    async strike({ postgres }) {
      await run(postgres.url, 'alter system set default_transaction_read_only = on');
      await run(postgres.url, 'select pg_reload_conf()');
    },
    async heal({ postgres }) {
      await run(postgres.url, 'alter system reset default_transaction_read_only');
      await run(postgres.url, 'select pg_reload_conf()');
    },
  });
  expect(troubles(wrongOrNone(outcome.measured))).toEqual({});
});
