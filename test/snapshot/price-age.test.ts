import { expect, it } from 'vitest';
import { until } from '../support/until.ts';
import { reprice, verify } from './rows.ts';
import { sceneForEachTest, TestClock } from './scene.ts';

const scene = sceneForEachTest();

const LATER = '2099-01-01T00:00:00Z';

it('a price history from memory has the age of its read, not of the machine', async () => {
  await scene.publisher.publishDirty();
  const clock = new TestClock();
  const reader = await scene.linkedReader({ now: clock.now });
  const { small } = scene.sample;
  const first = await reader.catalogue.machinePrices(small);
  await reprice(scene.sql, small, '0.75');
  for (const { id } of await scene.sql<{ id: string }[]>`select id from sources`)
    await verify(scene.sql, id, LATER);
  await scene.publisher.publishDirty();
  await reader.caughtUp();
  await until(async () => {
    const machine = await reader.catalogue.machine(small);
    return machine?.asOf?.startsWith('2099') === true && machine.body.identity.includes('0.75');
  });
  const cached = await reader.catalogue.machinePrices(small);
  expect([cached?.tier, cached?.asOf, cached?.body.hash]).toEqual(['memory', first?.asOf, first?.body.hash]);
  clock.forward(5001);
  const next = await reader.catalogue.machinePrices(small);
  expect(next?.tier).toBe('postgres');
  expect(next?.asOf).toMatch(/^2099/);
});
