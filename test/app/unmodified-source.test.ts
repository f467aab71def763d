import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { storeDecided } from '../../src/app/actions/batch.ts';
import { composeWorker, type Worker } from '../../src/app/worker.ts';
import { readConfig } from '../../src/config/config.ts';
import { pendingBatches } from '../../src/db/held-batches.ts';
import { createOrganization } from '../../src/db/organizations.ts';
import { beginRun } from '../../src/sync/runs/run.ts';
import { ATTRIBUTES } from '../sources/providers/aws-payloads.ts';
import { fakeUpstream } from '../support/fake-upstream.ts';
import { createDatabase } from '../support/postgres.ts';
import { OPERATOR } from '../sync/scene.ts';

/** A database and an upstream for each source. A run reads the current environment. */
async function scene({ hasDatabases = false } = {}) {
  await using undo = new AsyncDisposableStack();
  const database = undo.use(await createDatabase());
  const upstream = undo.use(await fakeUpstream());
  for (const offer of ['AWSDataTransfer', 'AmazonVPC', ...(hasDatabases ? [] : ['AmazonRDS'])]) {
    const regions = { elsewhere: { regionCode: 'elsewhere', currentVersionUrl: '/none' } };
    const path = `/offers/v1.0/aws/${offer}/current/region_index.json`;
    upstream.expect({ path, times: 'any' }, { json: { regions } });
  }
  const env: Record<string, string> = {
    DATABASE_URL: database.url,
    REDIS_URL: 'redis://127.0.0.1:1',
    PRICE_LIST_URL: `${upstream.url}/list.csv`,
    PRICE_LIST_PROVIDER: 'Acme',
    AWS_URL: upstream.url,
    CLUSTERS_URL: `${upstream.url}/clusters`,
    EXCHANGE_RATES_URL: `${upstream.url}/rates.xml`,
    CATALOGUE_RATES: 'EUR:1.1',
  };
  /** The worker of each environment. */
  const workers = new Map<string, Worker>();
  const workerNow = () => {
    const key = JSON.stringify(env);
    const found = workers.get(key) ?? composeWorker(readConfig(env), pino({ level: 'silent' }));
    workers.set(key, found);
    return found;
  };
  undo.defer(async () => {
    for (const each of workers.values()) await each[Symbol.asyncDispose]();
  });
  const worker = workerNow();
  const { db, sql } = worker.store;
  const named = (id: string) => {
    const source = readConfig(env).sources.find((each) => each.id === id);
    return source ?? expect.unreachable(`no source ${id}`);
  };
  const run = async (id: string) => {
    const { outcome, counts } = await workerNow().runSource(named(id));
    return { outcome, ...counts };
  };
  /** Answers the next request for a document; the request must send `given` as its ETag. */
  const answer = (
    path: string,
    given: string | null,
    answered: { etag?: string; raw: string } | 304,
    after: Promise<unknown> = Promise.resolve(),
  ) =>
    upstream.expect(
      { path, headers: { 'if-none-match': given } },
      answered === 304
        ? { after, status: 304 }
        : { after, raw: answered.raw, ...(answered.etag ? { headers: { etag: answered.etag } } : {}) },
    );
  const opened = undo.move();
  return {
    env,
    upstream,
    db,
    sql,
    store: worker.store,
    run,
    answer,
    approve: async (id: string) => {
      const [batch] = await pendingBatches(db);
      return storeDecided(readConfig(env), worker.store, named(id), {
        kind: 'approve',
        batchId: batch?.id ?? expect.unreachable('none held'),
        decider: { ...OPERATOR, reason: undefined },
      });
    },
    storedVersions: async () =>
      (await sql<{ etag: string }[]>`select etag from source_validators order by etag collate "C"`).map(
        ({ etag }) => etag,
      ),
    machines: () => sql`
      select r.code, m.name, m.missed_runs, m.retired_at is not null as retired, m.price::float as price
      from machines m join regions r on r.id = m.region_id order by r.code collate "C", m.name collate "C"`,
    written: () => sql`select ctid::text, xmin::text from machines order by ctid`,
    verified: async (id: string) =>
      (await sql`select verified_at from sources where id = ${id}`)[0]?.verified_at,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

const list = (...rows: string[]) =>
  ['region_code,region_name,name,cpu,ram,ram_unit,price,per,currency', ...rows, ''].join('\n');
const machine = (name: string, price = '0.06') => `a,Hall,${name},2,4,GiB,${price},hour,EUR`;
const ten = Array.from({ length: 10 }, (_, index) => machine(`m${index}`));

describe('an unchanged price list', () => {
  it('is not sent again: the run ends unchanged, nothing is written and the source is verified', async () => {
    await using here = await scene();
    here.answer('/list.csv', null, { etag: '"1"', raw: list(...ten) });
    expect(await here.run('price-list')).toMatchObject({ outcome: 'changed', seen: 10, added: 10 });
    const before = [await here.written(), await here.machines()];
    const verified = await here.verified('price-list');
    here.answer('/list.csv', '"1"', 304);
    expect(await here.run('price-list')).toEqual({
      outcome: 'unchanged',
      seen: 10,
      added: 0,
      changed: 0,
      retired: 0,
      rejected: 0,
      withdrawn: 0,
    });
    expect([await here.written(), await here.machines()]).toEqual(before);
    expect(await here.verified('price-list')).not.toEqual(verified);
    expect(await here.storedVersions()).toEqual(['"1"']);
  });

  it('is read again after its exchange rate, the currency or the options changed', async () => {
    await using here = await scene();
    here.answer('/list.csv', null, { etag: '"1"', raw: list(machine('m')) });
    await here.run('price-list');
    expect(await here.machines()).toMatchObject([{ price: expect.closeTo(0.0011, 12) }]);
    here.env.CATALOGUE_RATES = 'EUR:1.2';
    here.answer('/list.csv', null, { etag: '"1"', raw: list(machine('m')) });
    expect(await here.run('price-list')).toMatchObject({ outcome: 'changed', changed: 1 });
    expect(await here.machines()).toMatchObject([{ price: expect.closeTo(0.0012, 12) }]);
    here.answer('/list.csv', '"1"', 304);
    await here.run('price-list');
    here.env.CATALOGUE_CURRENCY = 'EUR';
    here.answer('/list.csv', null, { etag: '"1"', raw: list(machine('m')) });
    await here.run('price-list');
    here.env.PRICE_LIST_PROVIDER = 'Other';
    here.answer('/list.csv', null, { etag: '"1"', raw: list(machine('m')) });
    await here.run('price-list');
  });

  it('is read again while a row is rejected or a machine is missed, until that is retired', async () => {
    await using here = await scene();
    here.answer('/list.csv', null, { etag: '"1"', raw: list(...ten, machine('bad', 'x')) });
    expect(await here.run('price-list')).toMatchObject({ rejected: 1 });
    expect(await here.storedVersions()).toEqual([]);
    const nine = list(...ten.slice(1));
    for (const retired of [0, 0, 1]) {
      here.answer('/list.csv', null, { etag: '"2"', raw: nine });
      expect(await here.run('price-list')).toMatchObject({ retired });
    }
    here.answer('/list.csv', '"2"', 304);
    expect(await here.run('price-list')).toMatchObject({ outcome: 'unchanged', seen: 9 });
  });
});

describe('a held list', () => {
  it('is not hidden by its version: it is sent and held again, until the old one returns', async () => {
    await using here = await scene();
    here.answer('/list.csv', null, { etag: '"good"', raw: list(...ten) });
    await here.run('price-list');
    for (const _run of [1, 2]) {
      here.answer('/list.csv', '"good"', { etag: '"half"', raw: list(...ten.slice(5)) });
      expect(await here.run('price-list')).toMatchObject({ outcome: 'held' });
      expect(await here.storedVersions()).toEqual(['"good"']);
    }
    here.answer('/list.csv', '"good"', 304);
    expect(await here.run('price-list')).toMatchObject({ outcome: 'unchanged' });
    expect(await pendingBatches(here.db)).toEqual([]);
  });

  it('restores the version of the former list when it is approved', async () => {
    await using here = await scene();
    here.answer('/list.csv', null, { etag: '"good"', raw: list(...ten) });
    await here.run('price-list');
    here.answer('/list.csv', '"good"', { etag: '"half"', raw: list(...ten.slice(5)) });
    await here.run('price-list');
    expect(await here.approve('price-list')).toMatchObject({ outcome: 'changed', counts: { retired: 5 } });
    here.answer('/list.csv', null, { etag: '"good"', raw: list(...ten) });
    expect(await here.run('price-list')).toMatchObject({ outcome: 'changed', added: 5 });
  });

  it('leaves the stored version unchanged if its run fails or is superseded', async () => {
    await using here = await scene();
    here.answer('/list.csv', null, { etag: '"1"', raw: list(...ten) });
    await here.run('price-list');
    here.answer('/list.csv', '"1"', { etag: '"2"', raw: 'no,list\n1,2\n' });
    await expect(here.run('price-list')).rejects.toMatchObject({ kind: 'invalid' });
    expect(await here.storedVersions()).toEqual(['"1"']);

    for (const answered of [{ etag: '"2"', raw: list(...ten, machine('new')) }, 304] as const) {
      const released = Promise.withResolvers<void>();
      const { arrived } = here.answer('/list.csv', '"1"', answered, released.promise);
      const late = here.run('price-list');
      await arrived;
      await beginRun(here.db, 'price-list', undefined);
      released.resolve();
      expect(await late).toMatchObject({ outcome: 'superseded' });
      expect(await here.storedVersions()).toEqual(['"1"']);
    }
    here.answer('/list.csv', '"1"', { etag: '"2"', raw: list(...ten, machine('new')) });
    expect(await here.run('price-list')).toMatchObject({ outcome: 'changed', added: 1 });
    expect(await here.storedVersions()).toEqual(['"2"']);
  });
});

describe('one unchanged region of many', () => {
  const INDEX = '/offers/v1.0/aws/AmazonEC2/current/region_index.json';
  const index = (...files: string[]) => ({
    raw: JSON.stringify({
      regions: Object.fromEntries(
        files.map((file) => [
          file.slice(0, 1),
          { regionCode: file.slice(0, 1), currentVersionUrl: `/${file}` },
        ]),
      ),
    }),
  });
  const file = (etag: string, code: string, names: readonly string[], since = '2026-01-01T00:00:00Z') => ({
    etag,
    raw: JSON.stringify({
      products: Object.fromEntries(
        names.map((name) => [
          name,
          {
            productFamily: 'Compute Instance',
            attributes: {
              ...ATTRIBUTES,
              location: code.toUpperCase(),
              regionCode: code,
              instanceType: name,
            },
          },
        ]),
      ),
      terms: {
        OnDemand: Object.fromEntries(
          names.map((name) => [
            name,
            Object.fromEntries(
              ['2026-01-01T00:00:00Z', since].map((effectiveDate, at) => [
                `${at}`,
                { effectiveDate, priceDimensions: { d: { unit: 'Hrs', pricePerUnit: { USD: '0.1' } } } },
              ]),
            ),
          ]),
        ),
      },
    }),
  });
  const five = ['a1', 'a2', 'a3', 'a4', 'a5'];

  it('keeps its machines through the diff, also if another one changes, fails or is new', async () => {
    await using here = await scene();
    here.answer(INDEX, null, index('a/1', 'b/1'));
    here.answer('/a/1', null, file('"a1"', 'a', five));
    here.answer('/b/1', null, file('"b1"', 'b', ['m1']));
    expect(await here.run('aws')).toMatchObject({ outcome: 'changed', added: 6 });
    expect(await here.storedVersions()).toEqual(['"a1"', '"b1"']);

    here.answer(INDEX, null, index('a/1', 'b/1'));
    here.answer('/a/1', '"a1"', 304);
    here.answer('/b/1', '"b1"', 304);
    const before = await here.written();
    expect(await here.run('aws')).toMatchObject({ outcome: 'unchanged', seen: 6, rejected: 0 });
    expect(await here.written()).toEqual(before);

    here.answer(INDEX, null, index('a/1', 'b/2', 'c/1'));
    here.answer('/a/1', '"a1"', 304);
    here.answer('/b/2', null, file('"b2"', 'b', ['m1', 'm2']));
    here.answer('/c/1', null, { raw: '{}' });
    expect(await here.run('aws')).toMatchObject({ outcome: 'changed', seen: 8, added: 1, rejected: 1 });
    // The address of b's first file is deleted: the stored machines belong to another file.
    expect(await here.storedVersions()).toEqual(['"a1"', '"b2"']);
    expect(await here.machines()).toHaveLength(7);
    expect((await here.machines()).filter((row) => row.missed_runs > 0 || row.retired)).toEqual([]);
  });

  it('has plans of databases in a file of their own, which is read again alone', async () => {
    await using here = await scene({ hasDatabases: true });
    const PLANS = '/offers/v1.0/aws/AmazonRDS/current/region_index.json';
    const indexes = (machines: readonly string[], plans: readonly string[]) => {
      here.answer(INDEX, null, index(...machines));
      const regions = plans.map((each) => [
        each[0],
        { regionCode: each[0], currentVersionUrl: `/rds/${each}` },
      ]);
      here.upstream.expect({ path: PLANS }, { json: { regions: Object.fromEntries(regions) } });
    };
    const offer = (etag: string, USD: string, size = 'micro', more: object = {}) => {
      const attributes = {
        ...{ databaseEngine: 'MySQL', instanceType: `db.t3.${size}`, deploymentOption: 'Multi-AZ' },
        ...{ vcpu: '2', memory: '1 GiB', usagetype: 'Multi-AZUsage' },
      };
      const rate = { unit: 'Hrs', pricePerUnit: { USD } };
      const term = { effectiveDate: '2026-01-01T00:00:00Z', priceDimensions: { rate } };
      const productFamily = 'Database Instance';
      const products = { P: { productFamily, attributes }, ...more };
      return { etag, raw: JSON.stringify({ products, terms: { OnDemand: { P: { term } } } }) };
    };
    const plans = async () =>
      (
        await here.sql`
          select r.code || ' ' || d.name || ' ' || d.source_amount::float as plan
          from database_plans d join regions r on r.id = d.region_id where d.retired_at is null order by 1`
      ).map(({ plan }) => plan);

    indexes(['a/1', 'b/1'], ['a/1', 'b/1']);
    for (const code of ['a', 'b']) {
      here.answer(`/${code}/1`, null, file(`"${code}1"`, code, five));
      here.answer(`/rds/${code}/1`, null, offer(`"p${code}1"`, '0.034'));
    }
    expect(await here.run('aws')).toMatchObject({ outcome: 'changed', added: 10, rejected: 0 });
    expect(await plans()).toEqual(['a db.t3.micro 0.034', 'b db.t3.micro 0.034']);
    expect(await here.storedVersions()).toEqual(['"a1"', '"b1"', '"pa1"', '"pb1"']);

    // Plans alone change.
    indexes(['a/1', 'b/1'], ['a/2', 'b/1']);
    for (const code of ['a', 'b']) here.answer(`/${code}/1`, `"${code}1"`, 304);
    here.answer('/rds/a/2', null, offer('"pa2"', '0.036'));
    here.answer('/rds/b/1', '"pb1"', 304);
    expect(await here.run('aws')).toMatchObject({ outcome: 'changed', added: 0, rejected: 0 });
    expect(await plans()).toEqual(['a db.t3.micro 0.036', 'b db.t3.micro 0.034']);
    expect(await here.storedVersions()).toEqual(['"a1"', '"b1"', '"pa2"', '"pb1"']);

    // Machines change, and the file of plans fails: it alone is read again.
    indexes(['a/1', 'b/2'], ['a/2', 'b/2']);
    here.answer('/a/1', '"a1"', 304);
    here.answer('/b/2', null, file('"b2"', 'b', [...five, 'a6']));
    here.answer('/rds/a/2', '"pa2"', 304);
    here.upstream.expect({ path: '/rds/b/2' }, { status: 404 });
    expect(await here.run('aws')).toMatchObject({ outcome: 'changed', added: 1, rejected: 1 });
    expect(await plans()).toEqual(['a db.t3.micro 0.036', 'b db.t3.micro 0.034']);
    expect(await here.storedVersions()).toEqual(['"a1"', '"b2"', '"pa2"']);

    const onlyPlansOfB = (file: string, read: ReturnType<typeof offer>) => {
      indexes(['a/1', 'b/2'], ['a/2', file]);
      here.answer('/a/1', '"a1"', 304);
      here.answer('/b/2', '"b2"', 304);
      here.answer('/rds/a/2', '"pa2"', 304);
      here.answer(`/rds/${file}`, null, read);
    };

    // The same for one with an unusable row.
    const unusable = { Q: { productFamily: 'Database Instance', attributes: { databaseEngine: 'MySQL' } } };
    onlyPlansOfB('b/2', offer('"pb2"', '0.038', 'micro', unusable));
    expect(await here.run('aws')).toMatchObject({ outcome: 'changed', added: 0, rejected: 1 });
    expect(await plans()).toEqual(['a db.t3.micro 0.036', 'b db.t3.micro 0.038']);
    expect(await here.storedVersions()).toEqual(['"a1"', '"b2"', '"pa2"']);

    // And for one with a price that jumps.
    onlyPlansOfB('b/2', offer('"pb2"', '0.38'));
    expect(await here.run('aws')).toMatchObject({ outcome: 'unchanged' });
    expect(await here.sql`select code from quarantined_rows`).toEqual([{ code: 'price_jump' }]);
    expect(await plans()).toEqual(['a db.t3.micro 0.036', 'b db.t3.micro 0.038']);
    expect(await here.storedVersions()).toEqual(['"a1"', '"b2"', '"pa2"']);

    // A plan that is gone from its file is retired, although the machines of its region are unmodified.
    onlyPlansOfB('b/3', offer('"pb3"', '0.068', 'small'));
    expect(await here.run('aws')).toMatchObject({ outcome: 'changed', rejected: 0 });
    expect(await plans()).toEqual(['a db.t3.micro 0.036', 'b db.t3.small 0.068']);
    expect(await here.storedVersions()).toEqual(['"a1"', '"b2"', '"pa2"', '"pb3"']);
  });

  it('does not hide a held batch of the others, and is part of it when that is approved', async () => {
    await using here = await scene();
    here.answer(INDEX, null, index('a/1', 'b/1'));
    here.answer('/a/1', null, file('"a1"', 'a', five));
    here.answer('/b/1', null, file('"b1"', 'b', five));
    await here.run('aws');
    here.answer(INDEX, null, index('a/1', 'b/2'));
    here.answer('/a/1', '"a1"', 304);
    here.answer('/b/2', null, file('"b2"', 'b', ['a1']));
    expect(await here.run('aws')).toMatchObject({ outcome: 'held', seen: 6 });
    expect(await here.approve('aws')).toMatchObject({ outcome: 'changed', counts: { seen: 6, retired: 4 } });
    expect((await here.machines()).filter((row) => !row.retired)).toHaveLength(6);
    expect(await here.storedVersions()).toEqual([]);
  });

  it('is read again while one of its terms is in the future', async () => {
    await using here = await scene();
    here.answer(INDEX, null, index('a/1'));
    here.answer('/a/1', null, file('"a1"', 'a', five, '2999-01-01T00:00:00Z'));
    expect(await here.run('aws')).toMatchObject({ outcome: 'changed', added: 5 });
    expect(await here.storedVersions()).toEqual([]);
  });
});

describe('an unchanged file of exchange rates', () => {
  it('is not sent again, and is still verified', async () => {
    await using here = await scene();
    const day = new Date().toISOString().slice(0, 10);
    const raw = `<gesmes:Envelope><Cube><Cube time='${day}'><Cube currency='USD' rate='1.1'/></Cube></Cube></gesmes:Envelope>`;
    here.answer('/rates.xml', null, { etag: '"r"', raw });
    expect(await here.run('exchange-rates')).toMatchObject({ outcome: 'changed', added: 1 });
    const verified = await here.verified('exchange-rates');
    here.answer('/rates.xml', '"r"', 304);
    expect(await here.run('exchange-rates')).toMatchObject({ outcome: 'unchanged', seen: 1 });
    expect(await here.verified('exchange-rates')).not.toEqual(verified);
    expect(await here.sql`select currency from exchange_rates`).toHaveLength(1);
  });
});

describe('an unchanged list of clusters', () => {
  const clusters = (organization: string, names: readonly string[] = ['One']) =>
    JSON.stringify(
      names.map((name) => ({
        organization,
        name,
        region: { name: 'Hall', code: 'a' },
        provider: { name: 'Acme' },
        status: 'Active',
        shards: 1,
        replicas: 0,
        machine: { name: 'm0', cpu: 2, ram: 4, ram_unit: 'Binary' },
        disks: [],
        created_at: '2026-01-01T00:00:00.000001',
      })),
    );

  it('is not sent again once each cluster has its organization and its machine', async () => {
    await using here = await scene();
    here.answer('/clusters', null, { etag: '"c"', raw: clusters('org') });
    expect(await here.run('clusters')).toMatchObject({ rejected: 1 });
    await createOrganization(here.store.db, 'org', 'Org');
    here.answer('/clusters', null, { etag: '"c"', raw: clusters('org') });
    expect(await here.run('clusters')).toMatchObject({ outcome: 'changed', added: 1 });

    // Its machine is in no catalogue yet: only the list itself shows whether it is now.
    here.answer('/list.csv', null, { raw: list(machine('m0')) });
    await here.run('price-list');
    here.answer('/clusters', null, { etag: '"c"', raw: clusters('org') });
    expect(await here.run('clusters')).toMatchObject({ outcome: 'changed' });

    here.answer('/clusters', '"c"', 304);
    expect(await here.run('clusters')).toMatchObject({ outcome: 'unchanged', seen: 1 });
  });

  it('is read again while the removal of clusters waits for an operator', async () => {
    await using here = await scene();
    await createOrganization(here.store.db, 'org', 'Org');
    here.answer('/list.csv', null, { raw: list(machine('m0')) });
    await here.run('price-list');
    const names = Array.from({ length: 10 }, (_, index) => `c${index}`);
    here.answer('/clusters', null, { etag: '"ten"', raw: clusters('org', names) });
    expect(await here.run('clusters')).toMatchObject({ outcome: 'changed', added: 10 });
    for (const given of ['"ten"', null]) {
      here.answer('/clusters', given, { etag: '"five"', raw: clusters('org', names.slice(5)) });
      expect(await here.run('clusters')).toMatchObject({ outcome: 'held' });
    }
    expect(await pendingBatches(here.db)).toHaveLength(1);
  });
});
