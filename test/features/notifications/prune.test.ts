import { afterAll, beforeAll, expect, it } from 'vitest';
import { pruneAlerts } from '../../../src/db/alerts.ts';
import { pruneMessages } from '../../../src/features/notifications/messages.ts';
import { openScene, type Scene } from '../../sync/scene.ts';

let scene: Scene;
beforeAll(async () => {
  scene = await openScene();
});
afterAll(() => scene[Symbol.asyncDispose]());

it('alerts are deleted 90 days after they resolve, messages 90 days after their delivery or last attempt', async () => {
  const { sql } = scene;
  await sql`insert into alerts (key, kind, subject, summary, details, resolved_at)
    select coalesce('a:' || days, 'b'), 'a', coalesce(days::text, 'open'), '', '{}', now() - make_interval(days => days)
    from unnest(array[89, 91, null]) as days`;
  await sql`insert into messages (receiver, message_id, body, delivered_at, gave_up_at) values
    ('a', 'delivered', '{}', now() - interval '89 days', null),
    ('a', 'old', '{}', now() - interval '91 days', null),
    ('a', 'old', '{}', null, now() - interval '91 days'),
    ('a', 'waiting', '{}', null, null)`;
  await pruneAlerts(scene.store.db);
  await pruneMessages(scene.store.db);
  expect(await sql`select subject from alerts order by id`).toEqual([{ subject: '89' }, { subject: 'open' }]);
  expect(await sql`select message_id as id from messages order by id`).toEqual([
    { id: 'delivered' },
    { id: 'waiting' },
  ]);
});
