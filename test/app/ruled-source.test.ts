import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { composeWorker } from '../../src/app/worker.ts';
import { readConfig, type SourceConfig } from '../../src/config/config.ts';
import { createOrganization } from '../../src/db/organizations.ts';
import { ClusterRules } from '../../src/sources/cluster-rules.ts';
import { fakeUpstream } from '../support/fake-upstream.ts';
import { createDatabase } from '../support/postgres.ts';

const ROW = {
  name: 'events',
  status: 'Active',
  shards: 1,
  replicas: 2,
  created_at: '2026-01-02T03:04:05Z',
};

async function scene() {
  await using undo = new AsyncDisposableStack();
  const database = undo.use(await createDatabase());
  const upstream = undo.use(await fakeUpstream());
  const config = readConfig({
    DATABASE_URL: database.url,
    REDIS_URL: 'redis://127.0.0.1:1',
    CLUSTERS_URL: `${upstream.url}/clusters`,
  });
  const worker = undo.use(composeWorker(config, pino({ level: 'silent' })));
  for (const slug of ['acme', 'globex']) await createOrganization(worker.store.db, slug, slug);
  // Unknown machines are looked up again at every run, even if the feed is unmodified.
  await worker.store.sql`
    with provider as (insert into providers (name) values ('Acme Cloud') returning id),
      region as (insert into regions (provider_id, code, name) select id, 'dc1', 'Basel' from provider returning id)
    insert into machines (region_id, name, cpu, ram, ram_unit, price) select id, 'm', 4, 16, 'Binary', 1 from region`;
  const [source] = config.sources;
  if (source?.kind !== 'clusters') return expect.unreachable('it is configured');
  const opened = undo.move();
  return {
    upstream,
    sql: worker.store.sql,
    run: (rules: z.input<typeof ClusterRules>) => {
      const ruled: SourceConfig = { ...source, rules: ClusterRules.parse(rules) };
      return worker.runSource(ruled);
    },
    /** Answers the next request for the feed, with this ETag. */
    answerNext: (ifNoneMatch: string | null, answer: { rows: readonly object[]; etag: string } | 304) =>
      upstream.expect(
        { path: '/clusters', headers: { 'if-none-match': ifNoneMatch } },
        answer === 304 ? { status: 304 } : { json: answer.rows, headers: { etag: answer.etag } },
      ),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

const DEFAULTS = {
  provider: 'Acme Cloud',
  region: { code: 'dc1', name: 'Basel' },
  machine: { cpu: 4, ram: 16, ram_unit: 'Binary' },
} as const;

describe('a feed with the fewest fields', () => {
  it('is stored with the defaults of its source’s entry, and read again when the entry changes', async () => {
    await using feed = await scene();
    const rules = { organization: 'acme', defaults: DEFAULTS };
    feed.answerNext(null, { rows: [ROW], etag: '"1"' });
    expect(await feed.run(rules)).toMatchObject({ outcome: 'changed', counts: { added: 1, rejected: 0 } });
    const stored = () => feed.sql`
      select o.slug as organization, c.slug, p.name as provider, r.name as region, m.cpu, m.ram::float as ram, u.first_name
      from clusters c join organizations o on o.id = c.organization_id join machines m on m.id = c.machine_id
        join regions r on r.id = c.region_id join providers p on p.id = r.provider_id join users u on u.id = c.user_id`;
    const whole = {
      organization: 'acme',
      slug: 'events',
      provider: 'Acme Cloud',
      region: 'Basel',
      cpu: 4,
      ram: 16,
    };
    expect(await stored()).toEqual([{ ...whole, first_name: '' }]);

    feed.answerNext('"1"', 304);
    expect(await feed.run(rules)).toMatchObject({ outcome: 'unchanged' });

    const user = { first_name: 'Platform', last_name: '' };
    feed.answerNext(null, { rows: [ROW], etag: '"1"' });
    expect(await feed.run({ ...rules, defaults: { ...DEFAULTS, user } })).toMatchObject({
      outcome: 'changed',
    });
    expect(await stored()).toEqual([{ ...whole, first_name: 'Platform' }]);
  });

  it('is quarantined while its entry lacks a default, breaks no guard, and is read again', async () => {
    await using feed = await scene();
    const rows = Array.from({ length: 20 }, (_, index) => ({ ...ROW, name: `c${index}` }));
    feed.answerNext(null, { rows, etag: '"1"' });
    expect(await feed.run({ organization: 'acme' })).toMatchObject({
      outcome: 'unchanged',
      counts: { seen: 20, rejected: 20 },
    });
    const reasons = await feed.sql`select distinct reason from quarantined_rows`;
    expect(reasons).toEqual([{ reason: 'provider is missing; name one in defaults.provider' }]);

    feed.answerNext(null, { rows, etag: '"1"' });
    const rules = { organization: 'acme', defaults: DEFAULTS };
    expect(await feed.run(rules)).toMatchObject({ outcome: 'changed', counts: { added: 20, rejected: 0 } });
    expect(await feed.sql`select from quarantined_rows`).toHaveLength(0);
  });

  it('keeps its clusters if the upstream names another organization than the entry', async () => {
    await using feed = await scene();
    const rules = { organization: 'acme', defaults: DEFAULTS };
    const rows = Array.from({ length: 20 }, (_, index) => ({ ...ROW, name: `c${index}` }));
    feed.answerNext(null, { rows, etag: '"1"' });
    await feed.run(rules);
    feed.answerNext('"1"', { rows: rows.map((row) => ({ ...row, organization: 'globex' })), etag: '"2"' });
    expect(await feed.run(rules)).toMatchObject({ outcome: 'held', broken: [{ guard: 'empty' }] });
    expect(
      await feed.sql`select o.slug, count(*)::int from clusters c join organizations o on o.id = c.organization_id
        where c.retired_at is null group by 1`,
    ).toEqual([{ slug: 'acme', count: 20 }]);
  });
});
