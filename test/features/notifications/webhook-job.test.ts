import { expect, it } from 'vitest';
import { findOrganization } from '../../../src/db/organizations.ts';
import { SAMPLE_ORGANIZATION } from '../../../src/dev/sample/upstream.ts';
import { addWebhook } from '../../../src/features/notifications/receivers.ts';
import { until } from '../../support/until.ts';
import { type Receiver, receiver } from '../../support/webhook-receiver.ts';
import { settled, start, store, useServers } from '../../support/worker-scene.ts';
import { OPERATOR } from '../../sync/scene.ts';

useServers();

it('a worker sends new events, and retries them for a receiver that is down without delaying another one', async () => {
  await using dead = await receiver();
  await using alive = await receiver();
  dead.status = 503;
  const organization = await findOrganization(store.sql, SAMPLE_ORGANIZATION.slug);
  if (!organization) throw new Error('unreachable: the scene has it');
  const add = (url: string) =>
    addWebhook(store.db, organization, { url: new URL(url), events: ['clusters'] }, OPERATOR);
  await add(dead.url);
  await add(alive.url);
  const worker = await start();
  const queue = worker.queues.all.find(({ name }) => name === 'webhooks');
  if (!queue) throw new Error('unreachable: the feature has a queue');
  // The slot of the current minute.
  await until(async () => (await queue.getCompletedCount()) >= 1);
  await settled(worker);
  const hasNew = ({ taken }: Receiver) => taken.some(({ text }) => text.includes('"new"'));
  await store.sql`insert into feed_changes (last, count, at, organization_id, kinds, slugs)
    select position + 1, 1, now(), ${organization.id}, array['cluster.created'], array['new'] from feed_head`;
  await store.sql`update feed_head set position = position + 1`;
  await queue.add('check', {});
  await until(async () => (await queue.getDelayedCount()) === 1 && hasNew(alive));
  expect(dead.requestCount).toBeGreaterThan(0);
  expect(dead.taken).toEqual([]);
  const waiting = await queue.getDelayed();
  expect(JSON.stringify(waiting)).not.toContain('of-a-secret-path');
  dead.status = 200;
  await store.sql`update webhook_messages set next_attempt_at = now()`;
  await waiting[0]?.promote();
  await until(() => hasNew(dead));
  const dataOf = ({ taken }: Receiver) => taken.map(({ text }) => JSON.parse(text).data as unknown);
  expect(dataOf(dead)).toEqual(dataOf(alive));
});
