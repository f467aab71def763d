import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { composeWorker, type WorkerOptions } from '../../src/app/worker.ts';
import { readConfig } from '../../src/config/config.ts';
import { createOrganization } from '../../src/db/organizations.ts';
import {
  SAMPLE_HETZNER_TOKEN,
  SAMPLE_ORGANIZATION,
  startSampleUpstream,
} from '../../src/dev/sample/upstream.ts';
import { adoptCurrency } from '../../src/sync/currency.ts';
import { createDatabase } from '../support/postgres.ts';

/** A database that workers with different settings sync the sample into. */
async function scene() {
  const closing = new AsyncDisposableStack();
  const database = closing.use(await createDatabase());
  const sample = closing.use(await startSampleUpstream());
  const lines: { msg: string; lacking?: string[] }[] = [];
  const keep = (line: (typeof lines)[number]) => {
    if (!line.msg.startsWith('Redis')) lines.push(line);
  };
  const logger = pino({ level: 'info' }, { write: (line: string) => keep(JSON.parse(line)) });
  function worker(currency: string, rates: string, options: WorkerOptions = {}) {
    const config = readConfig({
      DATABASE_URL: database.url,
      REDIS_URL: 'redis://127.0.0.1:1',
      HETZNER_URL: sample.hetznerUrl,
      HETZNER_TOKEN: SAMPLE_HETZNER_TOKEN,
      LINODE_URL: sample.linodeUrl,
      CLUSTERS_URL: sample.clustersUrl,
      EXCHANGE_RATES_URL: 'http://127.0.0.1:1',
      CATALOGUE_CURRENCY: currency,
      CATALOGUE_RATES: rates,
    });
    const worker = closing.use(composeWorker(config, logger, options));
    const run = async (id: string) => {
      const source = config.sources.find((candidate) => candidate.id === id);
      return worker.runSource(source ?? expect.unreachable(`no source ${id}`));
    };
    return { config, worker, run };
  }
  const first = worker('USD', 'EUR:1.25');
  const { sql, db } = first.worker.store;
  await createOrganization(db, SAMPLE_ORGANIZATION.slug, SAMPLE_ORGANIZATION.name);
  return {
    first,
    worker,
    lines,
    sql,
    currency: async () => (await sql`select currency from lineage`)[0]?.currency,
    /** The prices of one unit of a source's currency: of machines, of their history, and of disk types. */
    async rates(source: string) {
      const per = sql`case source_per when 'minute' then 1 when 'hour' then 60 else 43800 end`;
      const rows = await sql<{ rate: number }[]>`
        select distinct round(price * ${per} / source_amount, 6)::float as rate from (
          select price, source_per, source_amount, source_currency from machines where price > 0
          union all select price, source_per, source_amount, source_currency from machine_prices where price > 0
          union all select price, source_per, source_amount, source_currency from disk_types) priced
        where source_currency = ${source}`;
      return rows.map(({ rate }) => rate);
    },
    versions: async () =>
      (
        await sql`
          select (select sum(version) from regions)::int as regions, (select providers_version from lineage)::int as providers,
                 (select sum(clusters_version) from organizations)::int as organizations`
      )[0],
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

describe('the published currency', () => {
  it('is the currency of the first worker, and setting it again changes nothing', async () => {
    await using here = await scene();
    expect(await here.currency()).toBeNull();
    for (const id of ['hetzner', 'linode', 'clusters']) await here.first.run(id);
    expect(await here.currency()).toBe('USD');
    expect([await here.rates('USD'), await here.rates('EUR')]).toEqual([[1], [1.25]]);
    const before = await here.versions();
    await here.worker('USD', 'EUR:1.25').worker.adoptCurrency();
    expect(await here.versions()).toEqual(before);
  });

  it('changes for all prices at once, including sources that are not running', async () => {
    await using here = await scene();
    for (const id of ['hetzner', 'linode', 'clusters']) await here.first.run(id);
    await here.sql`
      insert into price_book_entries (organization_id, machine_id, price, valid_from)
      select o.id, m.id, 0.005, now() from organizations o, (select min(id) as id from machines) m`;
    const before = await here.versions();
    await here.worker('EUR', 'USD:0.8').worker.adoptCurrency();
    expect(await here.currency()).toBe('EUR');
    expect(await here.sql`select price::float from price_book_entries`).toEqual([{ price: 0.004 }]);
    expect([await here.rates('USD'), await here.rates('EUR')]).toEqual([[0.8], [1]]);
    expect(await here.versions()).toEqual({
      regions: expect.toSatisfy((after: number) => after > before?.regions),
      providers: before?.providers + 1,
      organizations: before?.organizations + 1,
    });
    const [history] =
      await here.sql`select count(*)::int as n from machine_prices where valid_to is not null`;
    expect(history?.n).toBe(0);
    expect(here.lines.map(({ msg }) => msg)).toEqual([
      'all prices are published in the configured currency from now on',
    ]);
    // Runs that started before the change still use the old currency.
    await here.first.run('hetzner');
    expect([await here.currency(), await here.rates('EUR')]).toEqual(['EUR', [1]]);
  });

  it('is unchanged while a published price cannot be converted, and the error names the missing rate', async () => {
    await using here = await scene();
    for (const id of ['hetzner', 'linode']) await here.first.run(id);
    const before = await here.versions();
    const worker = here.worker('GBP', 'USD:0.75');
    await worker.run('linode');
    expect(await here.currency()).toBe('USD');
    expect(await here.versions()).toEqual(before);
    expect(here.lines).toMatchObject([
      { msg: expect.stringContaining('exchange rates to CATALOGUE_CURRENCY are missing'), lacking: ['EUR'] },
    ]);
    const settings = { CATALOGUE_CURRENCY: 'GBP', CATALOGUE_RATES: { USD: '0.75', EUR: '0.85' } };
    expect(await adoptCurrency(worker.worker.store, settings, new Date())).toMatchObject({
      outcome: 'changed',
      from: 'USD',
    });
    expect([await here.rates('USD'), await here.rates('EUR')]).toEqual([[0.75], [0.85]]);
  });

  it('is found by computing the prices again if the database does not state it', async () => {
    await using here = await scene();
    await here.first.run('linode');
    await here.sql`update lineage set currency = null`;
    await here.worker('EUR', 'USD:0.8').worker.adoptCurrency();
    expect([await here.currency(), await here.rates('USD')]).toEqual(['EUR', [0.8]]);
  });

  it('is not changed by a command whose environment names another currency', async () => {
    await using here = await scene();
    await here.first.run('linode');
    const command = here.worker('EUR', 'USD:0.8', { decidesCurrency: false });
    await command.run('linode');
    expect([await here.currency(), await here.rates('USD')]).toEqual(['USD', [1]]);
  });

  it('is not mixed by a run that priced its rows before the change', async () => {
    await using here = await scene();
    await here.first.run('linode');
    const { worker, config } = here.first;
    const other = here.worker('EUR', 'USD:0.8');
    const { sources } = config;
    const linode = sources.find(({ id }) => id === 'linode');
    if (linode?.kind !== 'catalogue') throw new Error('Linode is no catalogue');
    const { adapter } = linode;
    const run = worker.runSource({
      ...linode,
      adapter: {
        ...adapter,
        async *catalogue(context) {
          yield* adapter.catalogue(context);
          // The run has priced all rows and stored none.
          await other.worker.adoptCurrency();
        },
      },
    });
    await expect(run).rejects.toMatchObject({
      kind: 'retry',
      message: expect.stringContaining('currency was changed'),
    });
    expect([await here.currency(), await here.rates('USD')]).toEqual(['EUR', [0.8]]);
  });
});
