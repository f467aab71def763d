import { expect, it } from 'vitest';
import { type ReplicatedPostgres, startReplicatedPostgres } from '../engines/postgres-replica.ts';
import { recordHeld } from './support/earlier-state.ts';
import { lostFor, troubles, underLoad } from './support/row.ts';

it('readers serve no lost data after the promotion of a standby that was behind', async () => {
  let pair: ReplicatedPostgres | undefined;
  const both = () => pair ?? expect.unreachable('the stack has started it');
  const outcome = await underLoad({
    fault: 'PostgreSQL dies, and a standby that is {seconds} behind is promoted',
    stack: {
      postgres: async () => {
        const started = await startReplicatedPostgres({ maxConnections: 200 });
        pair = started;
        return { ...started.primary, [Symbol.asyncDispose]: () => started[Symbol.asyncDispose]() };
      },
    },
    strike: () => both().stream.refuse(),
    async heal({ database, postgres }, load) {
      load.publishes = false;
      await database.refuse();
      await postgres.kill();
      await both().promote();
      await recordHeld(both().replica.url, load);
      database.lead(both().replica.url);
      await database.heal();
    },
  });
  // Until the new lineage only PostgreSQL answers. It may have too many reads, so 503 is right, and counted.
  expect(troubles(outcome.measured.filter(({ wrong }) => wrong !== undefined))).toEqual({});
  expect(lostFor(outcome.measured)).toBeLessThan(1000);
});
