/** The short form of `npm run test:oracle`. ORACLE_SECONDS is the duration, ORACLE_SEED the first seed. */
import { performance } from 'node:perf_hooks';
import { expect, it } from 'vitest';
import { emptyTally, runHistory } from '../oracle/history.ts';
import { Servers } from '../oracle/servers.ts';
import { SEED } from '../support/random.ts';

const SECONDS = Number(process.env.ORACLE_SECONDS ?? 30);

it('the model allows every answer of random histories', async () => {
  const first = Number(process.env.ORACLE_SEED ?? SEED);
  await using servers = await Servers.open();
  const tally = emptyTally();
  let seed = first;
  for (const began = performance.now(); performance.now() - began < SECONDS * 1000; seed++) {
    console.info(`oracle: npm run test:oracle -- --seed ${seed} --histories 1 runs this history again`);
    await runHistory(servers, seed, tally);
  }
  console.info(`oracle: ${seed - first} histories, ${JSON.stringify(tally)}`);
  // A history without requests would pass too.
  expect(tally.answers[200]).toBeGreaterThan((seed - first) * 100);
});
