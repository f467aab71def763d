import { expect, it } from 'vitest';
import { troubles, underLoad } from './support/row.ts';

it('memory and Redis answer at once while PostgreSQL hangs', async () => {
  const outcome = await underLoad({
    fault: 'PostgreSQL hangs for {seconds}',
    strike: ({ database }) => database.hang(),
    heal: ({ database }) => database.heal(),
  });
  expect(troubles(outcome.measured)).toEqual({});
});
