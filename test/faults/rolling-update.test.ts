/** Two releases side by side, on the same PostgreSQL, cache and queues. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { releaseOfFormat } from './support/release.ts';
import { troubles, underLoad } from './support/row.ts';
import type { Stack } from './support/stack.ts';

/** Milliseconds for open requests of a reader that gets no new ones, as behind a load balancer. */
const DRAIN_MS = 2000;

async function replace(stack: Stack, old: string, name: string, cli: string | undefined): Promise<void> {
  stack.readers.push(await stack.startReader(name, cli));
  const [gone] = stack.readers.splice(
    stack.readers.findIndex((reader) => reader.name === old),
    1,
  );
  await sleep(DRAIN_MS);
  await gone?.program[Symbol.asyncDispose]();
}

/** Replaces one reader and a worker, and after a while the other processes. */
const roll = (to: string | undefined) => ({
  async strike(stack: Stack) {
    await replace(stack, 'a', 'c', to);
    await stack.startWorker(to);
  },
  async heal(stack: Stack) {
    await replace(stack, 'b', 'd', to);
    await stack.worker[Symbol.asyncDispose]();
  },
});

it('two releases with different document formats answer correctly together', async () => {
  await using next = await releaseOfFormat('FB3');
  const outcome = await underLoad({
    fault: 'A rolling update to another format of documents; both run for {seconds}',
    ...roll(next.cli),
  });
  // A document in the other format is a miss. PostgreSQL gets more reads, and a busy machine rejects some.
  expect({ wrong: outcome.wrong, troubles: outcome.wrong > 0 && troubles(outcome.measured) }).toEqual({
    wrong: 0,
    troubles: false,
  });
});
