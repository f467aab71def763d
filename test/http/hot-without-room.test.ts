/** What the hot path remembers, in a reader whose memory has no room for the document that it came from. */
import { setTimeout } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createToken } from '../../src/db/queries/tokens.ts';
import { buildApp } from '../../src/http/app.ts';
import { memoryBudget } from '../../src/snapshot/read/budget.ts';
import { addMachines, reprice } from '../snapshot/rows.ts';
import { sceneForEachTest } from '../snapshot/scene.ts';
import { until } from '../support/until.ts';
import { listen } from './harness.ts';
import { converse } from './wire.ts';

const scene = sceneForEachTest();

/** Bytes that an entry of memory takes beside its document, and half of what one machine's slice takes. */
const ROOM_BESIDE = 1300 + 900;

it('a remembered answer goes with a publication, also when its document was put out because it had grown', async () => {
  await addMachines(scene.sql, scene.sample.region, 150);
  const { token } = await createToken(scene.store.db, {
    organizationId: scene.sample.a,
    scopes: ['machines:read'],
  });
  await scene.publisher.publishDirty();
  const regionName = { kind: 'region', regionId: scene.sample.region } as const;
  const roomy = await scene.linkedReader();
  const { document } = await roomy.documents.get(regionName);
  // The document has room, and what is made of it when one machine is asked for has not.
  const memoryLimit = Math.ceil(((document?.size ?? 0) + ROOM_BESIDE) / memoryBudget(1).documents);
  const reader = await scene.linkedReader({ memoryLimit, pollMs: 100 });
  await using app = buildApp({
    catalogue: reader.catalogue,
    clusters: reader.clusters,
    tokens: reader.tokens,
    readiness: async () => ({ ready: true, checks: {} }),
    logger: false,
    version: '1.2.3',
    limits: { maxEventLoopDelayMs: 0 },
  });
  const port = await listen(app);
  const { provider, region, small } = scene.sample;
  const ask = async (target: string) => {
    const [answer] = await converse(port, [
      { method: 'GET', target, headers: [`Authorization: Bearer ${token}`] },
    ]);
    return answer ?? expect.unreachable();
  };
  const machine = `/v1/machines/${small}`;
  // Which region it is in is looked up in the ordinary way, and the list is brought back into memory.
  await ask(machine);
  await ask(`/v1/machines?provider=${provider}&region=${region}`);
  expect(reader.documents.peek(regionName)).toBeDefined();
  expect(JSON.parse((await ask(machine)).body)).toMatchObject({ price: 0.0001 });
  expect(reader.documents.peek(regionName)).toBeUndefined();
  const { epoch } = reader.link;
  await reprice(scene.sql, small, '0.777');
  await scene.publisher.publishDirty();
  // The message is there long before another reader has read it anew.
  const other = await scene.linkedReader();
  await until(async () => (await other.catalogue.machine(small))?.body.identity.includes('0.777'));
  await setTimeout(500);
  expect(reader.link.epoch).toBe(epoch);
  expect(JSON.parse((await ask(machine)).body)).toMatchObject({ price: 0.777 });
});
