import { expect, it } from 'vitest';
import { troubles, underLoad } from './support/row.ts';

it('what memory and Redis have is given at once while PostgreSQL is killed, and nothing committed is lost', async () => {
  const outcome = await underLoad({
    fault: 'PostgreSQL is killed for {seconds}',
    strike: ({ postgres }) => postgres.kill(),
    heal: ({ postgres }) => postgres.restart(),
  });
  expect(troubles(outcome.asked)).toEqual({});
  // A commit whose acknowledgement died with the server is one all the same: PostgreSQL has it after its recovery.
  expect(outcome.shownEarly).toMatchObject({ neverCommitted: 0, unknown: 0 });
});
