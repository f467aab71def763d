import { expect, it } from 'vitest';
import { copyFiles, putBack } from './support/earlier-state.ts';
import { lostFor, troubles, underLoad, wrongOrNone } from './support/row.ts';

it('readers serve no data that PostgreSQL lost with earlier files', async () => {
  const outcome = await underLoad({
    fault: 'The files of PostgreSQL are put back to what they were {seconds} before',
    strike: copyFiles,
    heal: putBack,
  });
  expect(troubles(wrongOrNone(outcome.measured))).toEqual({});
  expect(lostFor(outcome.measured)).toBeLessThan(2000);
});
