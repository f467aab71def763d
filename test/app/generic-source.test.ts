import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { composeWorker, type Worker } from '../../src/app/worker.ts';
import { type Config, readConfig } from '../../src/config/config.ts';
import { providerNamed } from '../../src/db/providers.ts';
import { createDatabase } from '../support/postgres.ts';
import { startTestRedis } from '../support/redis.ts';

const HEADER = 'region_code,region_name,name,cpu,ram,ram_unit,price,per,currency';

const closing = new AsyncDisposableStack();
let folder: string;
let env: Record<string, string>;
let config: Config;
let worker: Worker;

beforeAll(async () => {
  folder = closing.use(await mkdtempDisposable(join(tmpdir(), 'fleetbook-generic-'))).path;
  const database = closing.use(await createDatabase());
  const redis = closing.use(await startTestRedis());
  const catalogues = ['dc1', 'dc2'].map((region, index) => ({
    id: `acme-${region}`,
    adapter: 'price-list',
    url: join(folder, `${region}.csv`),
    options: { provider: index === 0 ? 'Acme Cloud' : 'ACME cloud' },
  }));
  await writeFile(join(folder, 'sources.json'), JSON.stringify({ catalogues }));
  env = {
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
    CATALOGUE_RATES: 'CHF:1.2',
    FLEETBOOK_CONFIG: join(folder, 'sources.json'),
  };
  config = readConfig(env);
  worker = closing.use(composeWorker(config, pino({ level: 'silent' })));
});
afterAll(() => closing.disposeAsync());

async function run(id: string, ...lines: string[]): Promise<unknown> {
  const source = config.sources.find((each) => each.id === id);
  if (!source) return expect.unreachable(`no source ${id}`);
  await writeFile(source.url, [HEADER, ...lines, ''].join('\n'));
  const { outcome, counts } = await worker.runSource(source);
  return { outcome, ...counts };
}

const providers = () => worker.store.sql`select id, name, listed from providers where id >= 1000 order by id`;

it('a provider that only the configuration names is created by its first run, and reused by later ones', async () => {
  expect(await run('acme-dc1', 'dc1,Hall 1,m.small,2,4,GiB,0.06,hour,CHF')).toEqual({
    outcome: 'changed',
    seen: 1,
    added: 1,
    changed: 0,
    retired: 0,
    rejected: 0,
    withdrawn: 0,
  });
  const made = [{ id: 1000, name: 'Acme Cloud', listed: true }];
  expect(await providers()).toEqual(made);
  expect(await run('acme-dc1', 'dc1,Hall 1,m.small,2,4,GiB,0.06,hour,CHF')).toMatchObject({
    outcome: 'unchanged',
  });
  expect(await providers()).toEqual(made);
});

it('two sources fill one provider, each with separate regions, in any spelling of its name', async () => {
  expect(await run('acme-dc2', 'dc2,Hall 2,m.small,2,4,GiB,0.09,hour,CHF')).toMatchObject({ added: 1 });
  expect(await run('acme-dc1', 'dc1,Hall 1,m.small,2,4,GiB,0.06,hour,CHF')).toMatchObject({
    outcome: 'unchanged',
  });
  expect(await providers()).toEqual([{ id: 1000, name: 'Acme Cloud', listed: true }]);
  const machines = await worker.store.sql`
    select r.code, r.name as region, m.name, m.price::text, m.source_id from machines m join regions r on r.id = m.region_id
    where r.provider_id = 1000 order by r.code`;
  // 0.06 CHF an hour at 1.2.
  expect(machines).toEqual([
    { code: 'dc1', region: 'Hall 1', name: 'm.small', price: '0.001200000000000000', source_id: 'acme-dc1' },
    { code: 'dc2', region: 'Hall 2', name: 'm.small', price: '0.001800000000000000', source_id: 'acme-dc2' },
  ]);
});

it('an unusable row keeps the machine that it names, and its reason is listed', async () => {
  expect(
    await run(
      'acme-dc1',
      'dc1,Hall 1,m.small,2,4,GiB,gratis,hour,CHF',
      'dc1,,m.large,8,32,GiB,0.24,hour,CHF',
    ),
  ).toMatchObject({ outcome: 'changed', seen: 2, added: 1, rejected: 1, retired: 0 });
  expect(
    await worker.store.sql`select row_key, reason from quarantined_rows where source_id = 'acme-dc1'`,
  ).toEqual([{ row_key: 'm.small@dc1', reason: 'line 2: price must be a decimal amount; it is "gratis"' }]);
  expect(
    await worker.store.sql`
      select m.price::text, m.missed_runs from machines m join regions r on r.id = m.region_id
      where r.code = 'dc1' and m.name = 'm.small'`,
  ).toEqual([{ price: '0.001200000000000000', missed_runs: 0 }]);
});

it('a new name is one provider for concurrent runs, and an existing one uses no id', async () => {
  const found = await Promise.all(Array.from({ length: 8 }, () => providerNamed(worker.store.db, 'Umbra')));
  expect(new Set(found.map(({ id }) => id)).size).toBe(1);
  const [before] = await worker.store.sql`select last_value from providers_id_seq`;
  expect(await providerNamed(worker.store.db, 'UMBRA')).toEqual(found[0]);
  expect(await providerNamed(worker.store.db, 'hetzner')).toEqual({ id: 5, name: 'Hetzner' });
  expect(await worker.store.sql`select last_value from providers_id_seq`).toEqual([before]);
});
