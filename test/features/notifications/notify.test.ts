import type { Queue } from 'bullmq';
import { expect, it } from 'vitest';
import { findOrganization } from '../../../src/db/organizations.ts';
import { SAMPLE_ORGANIZATION } from '../../../src/dev/sample/upstream.ts';
import type { AlertMessage } from '../../../src/features/notifications/alert-messages.ts';
import { addWebhook } from '../../../src/features/notifications/receivers.ts';
import { WEBHOOKS_AT_ONCE } from '../../../src/features/notifications/rules.ts';
import type { WorkerProcess } from '../../../workers/main.ts';
import { until } from '../../support/until.ts';
import { OPERATOR } from '../../sync/scene.ts';
import { settled, start, store, useServers } from '../../workers/scene.ts';
import { type Receiver, receiver } from './webhook-receiver.ts';

useServers();

/** Returns the queue after the job of the current minute. */
async function openQueue(worker: WorkerProcess): Promise<Queue> {
  const queue = worker.queues.all.find(({ name }) => name === 'notifications');
  if (!queue) throw new Error('unreachable: the feature has a queue');
  await until(async () => (await queue.getCompletedCount()) >= 1);
  await settled(worker);
  return queue;
}

async function nextMinute(queue: Queue): Promise<void> {
  const job = await queue.add('notify', {});
  await until(() => job.isCompleted());
}

it('a worker sends new alerts, and retries a message that a receiver did not accept when its row is due', async () => {
  await using hook = await receiver();
  hook.status = 503;
  const queue = await openQueue(await start({ ALERT_WEBHOOK_URL: hook.url }));
  await store.sql`insert into sync_runs (source_id, fence, outcome, error, finished_at)
    select 'hetzner', 0, 'failed', 'answered 500', now() from generate_series(1, 3)`;
  await nextMinute(queue);
  await until(async () => (await queue.getDelayedCount()) === 1 && hook.requestCount === 1);
  // The message is not due, so another minute adds no attempt.
  await nextMinute(queue);
  expect([hook.requestCount, await queue.getDelayedCount()]).toEqual([1, 1]);

  const [waiting] = await queue.getDelayed();
  expect(waiting?.data).toEqual({ to: { receiver: 'default' } });
  expect(waiting?.opts.priority ?? 0).toBe(0);
  expect(JSON.stringify(waiting)).not.toContain('of-a-secret-path');
  // A queue that is lost loses no message and no due time.
  await queue.drain(true);
  hook.status = 200;
  await nextMinute(queue);
  expect(hook.requestCount).toBe(1);
  await store.sql`update messages set next_attempt_at = now()`;
  await nextMinute(queue);
  await until(() => hook.taken.length === 1);
  const message = JSON.parse(hook.taken[0]?.text ?? '{}') as AlertMessage;
  expect(message).toMatchObject({
    type: 'alerts.opened',
    data: {
      alerts: [
        { kind: 'source_failing', subject: 'hetzner', details: { failures: 3, error: 'answered 500' } },
      ],
    },
  });
});

it('a worker sends new events, and retries them for a receiver that is down without delaying another one', async () => {
  await using dead = await receiver();
  await using alive = await receiver();
  dead.status = 503;
  const organization = await findOrganization(store.db, SAMPLE_ORGANIZATION.slug);
  if (!organization) throw new Error('unreachable: the scene has it');
  const add = (url: string) =>
    addWebhook(store.db, organization, { url: new URL(url), events: ['clusters'] }, OPERATOR);
  await add(dead.url);
  await add(alive.url);
  const queue = await openQueue(await start());
  const hasNew = ({ taken }: Receiver) => taken.some(({ text }) => text.includes('"new"'));
  await store.sql`insert into feed_changes (last, count, at, organization_id, kinds, slugs)
    select position + 1, 1, now(), ${organization.id}, array['cluster.created'], array['new'] from feed_head`;
  await store.sql`update feed_head set position = position + 1`;
  await nextMinute(queue);
  await until(async () => (await queue.getDelayedCount()) === 1 && hasNew(alive));
  expect(dead.requestCount).toBeGreaterThan(0);
  expect(dead.taken).toEqual([]);
  const waiting = await queue.getDelayed();
  // Jobs without a priority, those of alerts, come first.
  expect(waiting[0]?.opts.priority).toBe(1);
  expect(JSON.stringify(waiting)).not.toContain('of-a-secret-path');
  dead.status = 200;
  await store.sql`update messages set next_attempt_at = now()`;
  await waiting[0]?.promote();
  await until(() => hasNew(dead));
  const dataOf = ({ taken }: Receiver) => taken.map(({ text }) => JSON.parse(text).data as unknown);
  expect(dataOf(dead)).toEqual(dataOf(alive));
});

it('a worker sends an alert while more slow receivers of organizations have messages than it has places', async () => {
  const SLOW = WEBHOOKS_AT_ONCE + 8;
  await using slow = await receiver();
  await using operators = await receiver();
  const answers = Promise.withResolvers<void>();
  slow.before = answers.promise;
  const queue = await openQueue(await start({ ALERT_WEBHOOK_URL: operators.url }));
  await store.sql`
    with added as (
      insert into organization_webhooks (organization_id, url, secret, events, position)
      select o.id, ${slow.url}, '', array['clusters'], position
      from organizations o, feed_head, generate_series(1, ${SLOW}::int) returning id)
    insert into messages (webhook, message_id, body) select id, 'msg_' || id, '{}' from added`;
  await queue.add('notify', {});
  // No more requests begin, since all places of organizations are taken.
  await until(async () => slow.requestCount > 0 && (await queue.getDelayedCount()) > 0);
  await store.sql`insert into sync_runs (source_id, fence, outcome, error, finished_at)
    select 'hetzner', 0, 'failed', 'answered 500', now() from generate_series(1, 3)`;
  await queue.add('notify', {});
  await until(() => operators.taken.length === 1);
  expect(slow.mostAtOnce).toBeLessThanOrEqual(WEBHOOKS_AT_ONCE);
  answers.resolve();
  // On a busy machine an attempt may have failed without an answer in time.
  await store.sql`update messages set next_attempt_at = now() where last_error is not null`;
  await queue.add('notify', {});
  await until(async () => {
    const [row] = await store.sql`select count(*)::int as count from messages where delivered_at is not null`;
    return row?.count === SLOW + 1;
  });
  expect(slow.mostAtOnce).toBeLessThanOrEqual(WEBHOOKS_AT_ONCE);
});

it('a message to a receiver that is configured no more is given up after three days, and states why', async () => {
  const queue = await openQueue(await start());
  await store.sql`insert into messages (receiver, message_id, body, created_at) values
    ('pager', 'msg_1', '{}', now() - interval '73 hours'), ('pager', 'msg_2', '{}', now())`;
  await nextMinute(queue);
  const found = () => store.sql<{ id: string; isOver: boolean; error: string }[]>`
    select message_id as id, gave_up_at is not null as "isOver", last_error as error from messages order by id`;
  await until(async () => (await found()).every(({ error }) => error !== null));
  const error =
    'no receiver "pager" is configured; configure it again, or the message is given up when it is three days old';
  expect(await found()).toEqual([
    { id: 'msg_1', isOver: true, error },
    { id: 'msg_2', isOver: false, error },
  ]);
  // The row has the time of the next attempt, so the minutes until then add no attempt.
  await nextMinute(queue);
  expect(await store.sql`select attempts from messages`).toEqual([{ attempts: 1 }, { attempts: 1 }]);
});
