/** The figure of lost updates: one that nobody publishes is counted. */
import { expect, it } from 'vitest';
import { Load } from './support/load.ts';
import { openStack } from './support/stack.ts';

it('an update that is committed and never shown is counted, once for each reader', async () => {
  await using stack = await openStack();
  const load = new Load(stack);
  const [machine] = stack.machines;
  if (!machine) throw new Error('unreachable: the stack has machines');
  expect(await load.lostUpdates()).toBe(0);
  const subject = `machine ${machine.id}`;
  const number = load.ledger.begin(subject);
  // Without a new version of its list.
  await stack.store.sql`update machines set price = ${(number + 1) / 10_000} where id = ${machine.id}`;
  load.ledger.committed(subject, number);
  expect(await load.lostUpdates()).toBe(stack.readers.length);
}, 120_000);
