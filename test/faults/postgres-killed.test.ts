import { expect, it } from 'vitest';
import { troubles, underLoad } from './support/row.ts';

it('memory and Redis answer at once while PostgreSQL is killed, and no commit is lost', async () => {
  const outcome = await underLoad({
    fault: 'PostgreSQL is killed for {seconds}',
    strike: ({ postgres }) => postgres.kill(),
    heal: ({ postgres }) => postgres.restart(),
  });
  expect(troubles(outcome.measured)).toEqual({});
  // A commit may be durable although its acknowledgement was lost. PostgreSQL has it after recovery.
  expect(outcome.shownEarly).toMatchObject({ neverCommitted: 0, unknown: 0 });
});
