/** The number of lost updates counts an update that is never published. */
import { expect, it } from 'vitest';
import { Load } from './support/load.ts';
import { openStack } from './support/stack.ts';

it('a committed update that is never served counts once for each reader', async () => {
  await using stack = await openStack();
  const load = new Load(stack);
  const [machine] = stack.machines;
  if (!machine) throw new Error('unreachable: the stack has machines');
  expect(await load.lostUpdates()).toBe(0);
  const subject = `machine ${machine.id}`;
  const number = load.ledger.begin(subject);
  // The list gets no new version.
  await stack.store.sql`update machines set price = ${(number + 1) / 10_000} where id = ${machine.id}`;
  load.ledger.committed(subject, number);
  expect(await load.lostUpdates()).toBe(stack.readers.length);
}, 120_000);
