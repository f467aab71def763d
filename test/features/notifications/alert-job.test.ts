import { expect, it } from 'vitest';
import type { AlertMessage } from '../../../src/features/notifications/alert-messages.ts';
import { until } from '../../support/until.ts';
import { receiver } from '../../support/webhook-receiver.ts';
import { settled, start, store, useServers } from '../../support/worker-scene.ts';

useServers();

it('a worker sends new alerts, and retries a message that a webhook did not accept', async () => {
  await using hook = await receiver();
  hook.status = 503;
  const worker = await start({ ALERT_WEBHOOK_URL: hook.url });
  const alerts = worker.queues.all.find(({ name }) => name === 'alerts');
  if (!alerts) throw new Error('unreachable: the feature has a queue');
  // The slot of the current minute.
  await until(async () => (await alerts.getCompletedCount()) >= 1);
  await settled(worker);
  await store.sql`insert into sync_runs (source_id, fence, outcome, error, finished_at)
    select 'hetzner', 0, 'failed', 'answered 500', now() from generate_series(1, 3)`;
  await alerts.add('evaluate', {});
  await until(async () => (await alerts.getDelayedCount()) === 1 && hook.requestCount === 1);
  // While the job waits, another evaluation adds no second job.
  await store.sql`update alert_deliveries set next_attempt_at = now()`;
  const evaluations = await alerts.getCompletedCount();
  await alerts.add('evaluate', {});
  await until(async () => (await alerts.getCompletedCount()) > evaluations);
  expect(hook.requestCount).toBe(1);

  hook.status = 200;
  const [waiting] = await alerts.getDelayed();
  expect(waiting?.data).toEqual({ webhook: 'default' });
  expect(JSON.stringify(waiting)).not.toContain('of-a-secret-path');
  await waiting?.promote();
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
