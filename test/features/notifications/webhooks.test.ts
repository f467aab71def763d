import { createHmac } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { alertActivity } from '../../../src/db/alerts.ts';
import { openStore } from '../../../src/db/connection/connect.ts';
import { deleteOrganization, findOrganization, type Organization } from '../../../src/db/organizations.ts';
import { auditRecords } from '../../../src/features/console/queries/audit.ts';
import { appendChanges } from '../../../src/features/feed/append-changes.ts';
import { deliver, dueRecipients } from '../../../src/features/notifications/deliver.ts';
import {
  collectEvents,
  MOST_WAITING,
  type PricesChanged,
  type WebhookEvent,
  type WebhookMessage,
} from '../../../src/features/notifications/events.ts';
import { enqueue, findDeliveries, sendAgain } from '../../../src/features/notifications/messages.ts';
import {
  addWebhook,
  allWebhooks,
  findWebhook,
  listWebhooks,
  MOST_WEBHOOKS,
  organizationsRecipient,
  pruneWebhooks,
  removeWebhook,
  unlistedOf,
} from '../../../src/features/notifications/receivers.ts';
import { cluster } from '../../sync/clusters/rows.ts';
import { LAX, OPERATOR, offer, openScene, region, type Scene } from '../../sync/scene.ts';
import { type Receiver, receiver } from './webhook-receiver.ts';

let scene: Scene;
let hook: Receiver;
let closing: AsyncDisposableStack;
beforeAll(async () => {
  scene = await openScene();
});
afterAll(() => scene[Symbol.asyncDispose]());
beforeEach(async () => {
  await scene.reset();
  closing = new AsyncDisposableStack();
  hook = closing.use(await receiver());
  return () => closing.disposeAsync();
});

const catalogue = (amounts: Readonly<Record<string, string>> = {}, rates?: Record<string, string>) =>
  scene.catalogue(
    [
      region('a'),
      ...['m1', 'm2', 'm3'].map((name, n) =>
        offer('a', name, {
          cpu: 2 + n,
          price: { amount: amounts[name] ?? '0.06', currency: rates ? 'EUR' : 'USD' },
        }),
      ),
    ],
    { limits: LAX, ...(rates && { rates }) },
  );
/** A cluster of the organization on the machine with `cpu` cores. */
const on = (organization: string, key: string, cpu: number, shards = 1) =>
  cluster(key, { organization, shards, disks: [], machine: { cpu, ram: 4, ramUnit: 'Binary' } });
const publish = async () => {
  await scene.sql`update regions set published_version = version`;
  await scene.sql`update organizations set published_version = clusters_version`;
  await appendChanges(scene.store.db, 'all');
};
const organization = async (slug: string): Promise<Organization> =>
  (await findOrganization(scene.store.db, slug)) ?? expect.unreachable(slug);
const add = async (
  slug: string,
  events: WebhookEvent[] = ['clusters', 'prices'],
  url = hook.url,
  threshold?: string,
  machines?: readonly number[],
) => {
  const added = await addWebhook(
    scene.store.db,
    await organization(slug),
    { url: new URL(url), events, threshold, machines },
    OPERATOR,
  );
  return added ?? expect.unreachable('the organization has too many webhooks');
};
const check = (id: number) => collectEvents(scene.store.db, id, scene.now());
const send = async (id: number) =>
  deliver({
    db: scene.store.db,
    recipient: organizationsRecipient(
      (await findWebhook(scene.store.db, id)) ?? expect.unreachable('no such webhook'),
    ),
    logger: pino({ level: 'silent' }),
  });
const messages = () => hook.taken.map(({ text }) => JSON.parse(text) as WebhookMessage);
const endPauses = () => scene.sql`update messages set next_attempt_at = now()`;

/** Two organizations: `one` uses m1 and m2, `two` uses m2 and m3. */
async function openOrganizations(): Promise<void> {
  await scene.organization('one');
  await scene.organization('two');
  await catalogue();
  await scene.clusters([on('one', 'x', 2), on('one', 'y', 3), on('two', 'z', 3), on('two', 'w', 4)]);
  await publish();
}

describe('a webhook', () => {
  it('gets the changes of clusters of its organization, signed, in order, and no earlier ones', async () => {
    await openOrganizations();
    const { id, secret } = await add('one');
    expect(await check(id)).toBe(0);
    await scene.clusters([on('one', 'x', 2, 3), on('one', 'new', 2), on('two', 'z', 3, 9)], {
      missingIsDeleted: true,
    });
    expect(await check(id)).toBe(0);
    await publish();
    expect(await check(id)).toBe(1);
    expect(await check(id)).toBe(0);
    await send(id);
    expect(messages()).toEqual([
      {
        type: 'clusters.changed',
        timestamp: scene.now().toISOString(),
        data: {
          organization: 'one',
          clusters: [
            { change: 'created', slug: 'new' },
            { change: 'changed', slug: 'x' },
            { change: 'deleted', slug: 'y' },
          ],
          incomplete: false,
        },
      },
    ]);
    const [{ headers, text } = { headers: {}, text: '' }] = hook.taken;
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`;
    const signature = createHmac('sha256', secret).update(signed).digest('base64');
    expect(headers['webhook-signature']).toBe(`v1,${signature}`);
  });

  it('gets changed prices of machines that its clusters use, once readers have them', async () => {
    await openOrganizations();
    const { id } = await add('one');
    await check(id);
    await scene.sql`
      insert into price_book_entries (organization_id, discount, valid_from)
      select id, 10, '2020-01-01Z' from organizations where slug = 'one'`;
    await catalogue({ m1: '0.09', m3: '0.09' });
    expect(await check(id)).toBe(0);
    await publish();
    expect(await check(id)).toBe(1);
    expect(await check(id)).toBe(0);
    await send(id);
    expect(messages()).toMatchObject([
      {
        type: 'prices.changed',
        data: {
          organization: 'one',
          machines: [
            {
              name: 'm1',
              provider: 'Acme',
              region: 'a',
              before: { amount: '0.06', per: 'hour', currency: 'USD' },
              after: { amount: '0.09', per: 'hour', currency: 'USD' },
              price: 0.00135,
              list_price: 0.0015,
              clusters: ['x'],
              more: 0,
            },
          ],
        },
      },
    ]);
  });

  it('gets nothing about an exchange rate, or about a machine that a cluster begins to use', async () => {
    await scene.organization('one');
    await catalogue({}, { EUR: '1.10' });
    await scene.clusters([on('one', 'x', 2)]);
    await publish();
    const { id } = await add('one', ['prices']);
    await check(id);
    await catalogue({}, { EUR: '1.20' });
    await scene.clusters([on('one', 'x', 3)]);
    await publish();
    const [price] = await scene.sql`select price::float8 as price from machines where name = 'm1'`;
    expect(price).toEqual({ price: expect.closeTo(0.0012, 8) });
    expect(await check(id)).toBe(0);
    await catalogue({ m2: '0.07' }, { EUR: '1.20' });
    await publish();
    expect(await check(id)).toBe(1);
  });

  it('gets no byte of another organization, whatever changes there', async () => {
    await openOrganizations();
    const [one, two] = [await add('one'), await add('two')];
    for (const { id } of [one, two]) await check(id);
    await catalogue({ m1: '0.07', m2: '0.08', m3: '0.09' });
    await scene.clusters([on('one', 'x', 2, 2), on('one', 'y', 3), on('two', 'z', 3, 2), on('two', 'w', 4)]);
    await publish();
    for (const [{ id }, names, slugs, foreign] of [
      [one, ['m1', 'm2'], ['x', 'y'], /two|"z"|"w"|m3/],
      [two, ['m2', 'm3'], ['w', 'z'], /one|"x"|"y"|m1/],
    ] as const) {
      hook.taken.length = 0;
      expect(await check(id)).toBe(2);
      await send(id);
      const [clusters, prices] = messages().map(({ data }) => data);
      expect(clusters).toMatchObject({ clusters: [{ change: 'changed' }] });
      expect(prices).toMatchObject({ machines: names.map((name) => ({ name })) });
      expect((prices as PricesChanged).machines.flatMap((each) => each.clusters).sort()).toEqual(slugs);
      expect(hook.taken.map(({ text }) => text).join('\n')).not.toMatch(foreign);
    }
  });

  it('gets only the events that it names', async () => {
    await openOrganizations();
    const [clusters, prices] = [await add('one', ['clusters']), await add('one', ['prices'])];
    for (const { id } of [clusters, prices]) await check(id);
    await catalogue({ m1: '0.07' });
    await scene.clusters([on('one', 'x', 2, 2), on('one', 'y', 3)]);
    await publish();
    for (const { id } of [clusters, prices]) expect(await check(id)).toBe(1);
    for (const { id } of [clusters, prices]) await send(id);
    expect(messages().map(({ type }) => type)).toEqual(['clusters.changed', 'prices.changed']);
  });

  it('gets a flip of the stock of a provider of its clusters, with counts', async () => {
    await openOrganizations();
    await scene.organization('none');
    const [one, none] = [await add('one', ['stock']), await add('none', ['stock'])];
    for (const { id } of [one, none]) expect(await check(id)).toBe(0);
    const excluded = 'sold_out' as const;
    await scene.catalogue([
      region('a'),
      ...['m1', 'm2', 'm3'].map((name, n) => offer('a', name, { cpu: 2 + n, excluded })),
    ]);
    expect(await check(none.id)).toBe(0);
    expect(await check(one.id)).toBe(1);
    expect(await check(one.id)).toBe(0);
    await catalogue();
    expect(await check(one.id)).toBe(1);
    await send(one.id);
    const counts = {
      provider: 'Acme',
      changed: 3,
      machines: 3,
      now: 3,
      regions: 1,
      clusters: ['x', 'y'],
      more: 0,
    };
    expect(messages().map(({ type, data }) => [type, data])).toEqual(
      ['sold_out', 'available'].map((to) => [
        'stock.flipped',
        { organization: 'one', flips: [{ to, ...counts }] },
      ]),
    );
  });

  it('gets clusters whose version ends soon or has ended, each state once, and those that exist at first', async () => {
    const running = (key: string, version: string, endOfLife?: string) =>
      cluster(key, {
        ...{ organization: 'one', disks: [], machine: { cpu: 2, ram: 4, ramUnit: 'Binary' } },
        software: { engine: 'postgresql', version, ...(endOfLife && { endOfLife }) },
      });
    await scene.organization('one');
    const { id } = await add('one', ['lifecycle']);
    const day = (days: number) =>
      new Date(scene.now().getTime() + days * 86_400_000).toISOString().slice(0, 10);
    await scene.sql`insert into sources (id, kind, adapter) values ('lifecycles', 'lifecycles', 'endoflife')`;
    const setEnd = (end: string) => scene.sql`
      insert into lifecycles (source_id, engine, name, end_of_life, has_ended)
      values ('lifecycles', 'postgresql', '14', ${end}::text::date, false)
      on conflict (source_id, engine, name) do update set end_of_life = excluded.end_of_life`;
    await setEnd(day(100));
    await scene.clusters([running('soon', '14.1'), running('unknown', '8'), running('own', '17', day(-1))]);
    expect(await check(id)).toBe(1);
    expect(await check(id)).toBe(0);
    await setEnd(day(-2));
    expect(await check(id)).toBe(1);
    await setEnd(day(2000));
    expect(await check(id)).toBe(0);
    await send(id);
    const common = { provider: 'Acme', engine: 'postgresql' };
    const own = { slug: 'own', ...common, version: '17', end_of_life: expect.any(String), stated_by: 'Acme' };
    const soon = { slug: 'soon', ...common, version: '14.1', stated_by: 'endoflife.date' };
    expect(messages().map(({ type, data }) => [type, data])).toEqual([
      [
        'lifecycle.ending',
        {
          ...{ organization: 'one', within: 180 },
          clusters: [
            { ...own, state: 'ended' },
            { ...soon, state: 'supported', end_of_life: expect.any(String) },
          ],
        },
      ],
      [
        'lifecycle.ending',
        {
          ...{ organization: 'one', within: 180 },
          clusters: [{ ...soon, state: 'ended', end_of_life: expect.any(String) }],
        },
      ],
    ]);
  });

  it('gets each named machine once it is back in stock, when readers have it', async () => {
    await openOrganizations();
    const ids = await scene.sql<{ id: number; name: string }[]>`select id, name from machines order by id`;
    const idOf = (name: string) => ids.find((each) => each.name === name)?.id ?? expect.unreachable(name);
    const named = [idOf('m1'), idOf('m2')];
    const one = await add('one', ['restocked'], hook.url, undefined, named);
    const two = await add('two', ['restocked'], hook.url, undefined, [idOf('m3')]);
    const stock = async (...soldOut: readonly string[]) => {
      const names = ['m1', 'm2', 'm3'];
      const offers = names.map((name, n) =>
        offer('a', name, { cpu: 2 + n, ...(soldOut.includes(name) && { excluded: 'sold_out' as const }) }),
      );
      return scene.catalogue([region('a'), ...offers], { limits: LAX });
    };
    await stock('m1', 'm3');
    await publish();
    expect([await check(one.id), await check(two.id)]).toEqual([0, 0]);
    await stock('m2', 'm3');
    // Readers do not have it yet.
    expect(await check(one.id)).toBe(0);
    await publish();
    expect([await check(one.id), await check(one.id), await check(two.id)]).toEqual([1, 0, 0]);
    await stock();
    await publish();
    expect([await check(one.id), await check(two.id)]).toEqual([1, 1]);
    await scene.sql`insert into price_book_entries (organization_id, discount, valid_from)
      select id, 50, '2020-01-01' from organizations where slug = 'one'`;
    await stock('m1', 'm2');
    await publish();
    await check(one.id);
    await stock();
    await publish();
    expect(await check(one.id)).toBe(1);
    await send(one.id);
    const machine = (name: string, price: number) => ({
      ...{ id: idOf(name), name, provider: 'Acme', region: 'a', price, list_price: 0.001 },
      since: expect.stringMatching(/^2026-01-01T\d\d:00:00\.000000Z$/),
    });
    expect(messages().map(({ type, data }) => [type, data])).toEqual(
      [[machine('m1', 0.001)], [machine('m2', 0.001)], [machine('m1', 0.0005), machine('m2', 0.0005)]].map(
        (machines) => ['machines.restocked', { organization: 'one', machines }],
      ),
    );
  });

  it('names no machine that only clusters of another organization use', async () => {
    await openOrganizations();
    const [own] = await scene.sql<{ id: number }[]>`
      insert into machines (region_id, name, cpu, ram, ram_unit, excluded_reason)
      select id, 'private', 7, 7, 'Binary', 'unlisted' from regions where code = 'a' returning id`;
    const [listed] = await scene.sql<{ id: number }[]>`select id from machines where name = 'm1'`;
    const ids = [listed?.id ?? 0, own?.id ?? 0, 999_999];
    expect(await unlistedOf(scene.store.db, ids)).toBe(own?.id);
    expect(await unlistedOf(scene.store.db, ids.slice(0, 1))).toBeUndefined();
  });

  it('gets a saving once it reaches the threshold, and again after it was below', async () => {
    await openOrganizations();
    await scene.sql`update lineage set currency = 'USD'`;
    // m3 has at least the size of m1 and m2. Each cluster has two nodes of 730 hours.
    const { id } = await add('one', ['savings'], hook.url, '1.5');
    const priceOfM3 = async (amount: string) => {
      await catalogue({ m3: amount });
      await publish();
      return check(id);
    };
    expect(await check(id)).toBe(0);
    expect(await priceOfM3('0.0591')).toBe(0);
    expect(await priceOfM3('0.058')).toBe(1);
    expect(await priceOfM3('0.057')).toBe(0);
    expect(await priceOfM3('0.06')).toBe(0);
    await send(id);
    const cluster = {
      provider: 'Acme',
      region: 'a',
      alternative: { name: 'm3' },
      saving_per_month: expect.closeTo(2.92, 6),
    };
    expect(messages()).toMatchObject([
      {
        type: 'savings.possible',
        data: {
          organization: 'one',
          threshold: '1.5',
          currency: 'USD',
          clusters: [
            { ...cluster, slug: 'x', machine: { name: 'm1' } },
            { ...cluster, slug: 'y', machine: { name: 'm2' } },
          ],
        },
      },
    ]);
    expect(await priceOfM3('0.05')).toBe(1);
    // A discount of another organization changes nothing here.
    await scene.sql`insert into price_book_entries (organization_id, discount, valid_from)
      select id, 90, '2020-01-01' from organizations where slug = 'two'`;
    expect(await check(id)).toBe(0);
  });

  it('gets the savings that exist when it is added, once', async () => {
    await openOrganizations();
    await scene.sql`update lineage set currency = 'USD'`;
    await catalogue({ m3: '0.05' });
    const { id } = await add('one', ['savings'], hook.url, '1.5');
    // Readers do not have the price yet.
    expect(await check(id)).toBe(0);
    await publish();
    expect([await check(id), await check(id)]).toEqual([1, 0]);
    await send(id);
    expect(messages()).toMatchObject([
      { type: 'savings.possible', data: { clusters: [{ slug: 'x' }, { slug: 'y' }] } },
    ]);
  });

  it('is checked on the connection of its transaction: other transactions may have all others', async () => {
    await openOrganizations();
    await scene.sql`update lineage set currency = 'USD'`;
    await catalogue({ m3: '0.05' });
    const { id } = await add('one', ['clusters', 'prices', 'savings'], hook.url, '1.5');
    await publish();
    await using store = openStore({ url: scene.db.url, role: 'worker', connections: 1 });
    expect(await collectEvents(store.db, id, scene.now())).toBe(1);
  });

  it('learns that changes are lost if the feed no longer has them', async () => {
    await openOrganizations();
    const { id } = await add('one', ['clusters']);
    await scene.sql`update feed_head set pruned = position + 1`;
    await check(id);
    await send(id);
    expect(messages()).toMatchObject([{ data: { clusters: [], incomplete: true } }]);
  });
});

describe('delivery', () => {
  const change = async (shards: number) => {
    await scene.clusters([on('one', 'x', 2, shards), on('one', 'y', 3)]);
    await publish();
  };

  it('keeps the order and the message id while a receiver is down, and blocks no other webhook', async () => {
    await openOrganizations();
    const dead = closing.use(await receiver());
    dead.status = 503;
    const [first, second] = [await add('one', ['clusters'], dead.url), await add('one', ['clusters'])];
    for (const shards of [2, 3, 4]) {
      await change(shards);
      for (const { id } of [first, second]) expect(await check(id)).toBe(1);
    }
    expect(await dueRecipients(scene.store.db)).toEqual([{ webhook: first.id }, { webhook: second.id }]);
    expect(await send(first.id)).toBe(15_000);
    expect(await send(second.id)).toBeUndefined();
    expect(hook.taken).toHaveLength(3);
    expect(dead.requestCount).toBe(1);
    const stored = await scene.sql<{ id: string }[]>`
      select message_id as id from messages where webhook = ${first.id} order by messages.id`;
    dead.status = 200;
    await endPauses();
    await send(first.id);
    expect(dead.taken.map(({ headers }) => headers['webhook-id'])).toEqual(stored.map(({ id }) => id));
    expect(await listWebhooks(scene.store.db, (await organization('one')).id)).toMatchObject([
      { id: first.id, origin: new URL(dead.url).origin, waiting: 0, lastError: null },
      { id: second.id, waiting: 0, deliveredAt: expect.stringMatching(/Z$/) },
    ]);
  });

  it('ends after a minute, so that a slow receiver with many messages leaves its place to others', async () => {
    await openOrganizations();
    const { id } = await add('one', ['clusters']);
    for (const shards of [2, 3, 4]) {
      await change(shards);
      await check(id);
    }
    const began = Date.now();
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => began + hook.taken.length * 40_000);
    expect(await send(id).finally(() => clock.mockRestore())).toBeUndefined();
    expect(hook.taken).toHaveLength(2);
    expect(await dueRecipients(scene.store.db)).toEqual([{ webhook: id }]);
  });

  it('has a bounded queue: changes wait in the feed, and none is lost', async () => {
    await openOrganizations();
    const { id } = await add('one', ['clusters']);
    await scene.sql`insert into messages (webhook, message_id, body)
      select ${id}, 'full', '{}' from generate_series(1, ${MOST_WAITING})`;
    await change(2);
    expect(await check(id)).toBe(0);
    await scene.sql`delete from messages where message_id = 'full'`;
    expect(await check(id)).toBe(1);
  });

  it('sends nothing to a link-local address, and shows no address', async () => {
    await openOrganizations();
    const { id } = await add('one', ['clusters'], 'https://169.254.169.254/of-a-secret-path');
    await change(2);
    await check(id);
    await send(id);
    const [listed] = await listWebhooks(scene.store.db, (await organization('one')).id);
    expect(listed?.lastError).toMatch(/link-local address/);
    expect(JSON.stringify(listed)).not.toContain('of-a-secret-path');
  });
});

describe('the stored webhooks', () => {
  it('are not readable in the role of readers', async () => {
    await openOrganizations();
    await add('one');
    await using reader = openStore({ url: scene.db.url, role: 'reader' });
    for (const table of ['organization_webhooks', 'messages'])
      await expect(reader.sql`select * from ${reader.sql(table)}`).rejects.toThrow(/permission denied/);
  });

  it('have messages that no list of operators shows, and that no operator sends again', async () => {
    await openOrganizations();
    const { id } = await add('one', ['clusters']);
    const { db } = scene.store;
    const mark = await alertActivity(db);
    await enqueue(db, [{ to: { webhook: id }, body: { type: 'webhook.test' } }]);
    const [message] = await scene.sql<{ id: number }[]>`select id::int from messages`;
    expect(await findDeliveries(db, { limit: undefined })).toEqual({ total: 0, rows: [] });
    expect(await sendAgain(db, message?.id ?? 0, OPERATOR)).toBeUndefined();
    expect(await alertActivity(db)).toBe(mark);
    expect(await dueRecipients(db)).toEqual([{ webhook: id }]);
    await removeWebhook(db, await organization('one'), id, OPERATOR);
    expect(await scene.sql`select from messages`).toHaveLength(0);
  });

  it('are audited without their secrets, limited, and deleted with their organization', async () => {
    await openOrganizations();
    const one = await organization('one');
    const { id, secret } = await add('one');
    const records = JSON.stringify((await auditRecords(scene.store.db, {})).rows);
    expect(records).toContain('webhook.add');
    expect(records).not.toContain('of-a-secret-path');
    expect(records).not.toContain(secret.toString('base64'));
    for (let n = 1; n < MOST_WEBHOOKS; n++) await add('one');
    expect(
      await addWebhook(scene.store.db, one, { url: new URL(hook.url), events: ['prices'] }, OPERATOR),
    ).toBeUndefined();
    expect(await removeWebhook(scene.store.db, await organization('two'), id, OPERATOR)).toBe(false);
    expect(await removeWebhook(scene.store.db, one, id, OPERATOR)).toBe(true);
    const last = await add('one');
    const other = await add('two');
    await deleteOrganization(scene.store.db, 'one');
    expect(await allWebhooks(scene.store.db)).toEqual([other.id]);
    // Nothing more is sent, although the sweep of the next minute deletes the webhook.
    expect(await findWebhook(scene.store.db, last.id)).toBeUndefined();
    expect(await findWebhook(scene.store.db, other.id)).toMatchObject({ id: other.id });
    await pruneWebhooks(scene.store.db);
    expect(await scene.sql`select id from organization_webhooks`).toEqual([{ id: other.id }]);
  });
});
