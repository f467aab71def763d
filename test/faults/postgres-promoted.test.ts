import { expect, it } from 'vitest';
import { type ReplicatedPostgres, startReplicatedPostgres } from '../support/postgres-replica.ts';
import { noteWhatIsHeld } from './support/earlier-state.ts';
import { lostFor, troubles, underLoad } from './support/row.ts';

it('readers give nothing that was lost with a primary when a standby that was behind is promoted', async () => {
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
      await noteWhatIsHeld(both().replica.url, load);
      database.lead(both().replica.url);
      await database.heal();
    },
  });
  // Until there is a new lineage PostgreSQL alone is asked, and may be asked too much: 503 is right then, and counted.
  expect(troubles(outcome.asked.filter(({ wrong }) => wrong !== undefined))).toEqual({});
  expect(lostFor(outcome.asked)).toBeLessThan(1000);
});
