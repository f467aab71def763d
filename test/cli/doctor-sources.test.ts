import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { failureRemedy } from '../../src/cli/doctor/source-remedy.ts';
import { openStore } from '../../src/db/connection/connect.ts';
import type { SourceSetting } from '../../src/domain/source.ts';
import { buildOps } from '../../src/ops/server.ts';
import { freePort } from '../../src/processes/port.ts';
import { disableSource } from '../../src/sync/runs/disabled.ts';
import { beginRun, finishRun, NO_COUNTS, registerSource } from '../../src/sync/runs/run.ts';
import { claimSlot } from '../../src/sync/runs/slots.ts';
import { createDatabase } from '../support/postgres.ts';
import { found, PROBLEM, useServers } from './doctor-scene.ts';

useServers();

describe('a port', () => {
  it('that another program uses is a problem, and one of Fleetbook is not', async () => {
    await using closing = new AsyncDisposableStack();
    const other = createServer((_, response) => response.end('something else'));
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    closing.defer(() => void other.close());
    const { port } = other.address() as AddressInfo;
    const ops = await buildOps({ token: undefined, metrics: async () => '', queues: [] });
    closing.defer(() => ops.close());
    await ops.listen({ host: '127.0.0.1', port: 0 });
    const { port: own } = ops.server.address() as AddressInfo;
    const ports = { PORT: String(port), OPS_PORT: String(own) };
    expect(await found('port of the API', ports)).toMatchObject([
      {
        ...PROBLEM,
        found: `port ${port} is used by another program`,
        mend: expect.stringMatching(/^stop that program, or set another port, e\.g\. PORT=\d+$/),
      },
    ]);
    expect(await found('port of the operators’ pages', ports)).toMatchObject([
      { verdict: 'ok', found: `Fleetbook answers at 127.0.0.1:${own}` },
    ]);
  });

  it('with Fleetbook’s operator pages reports whether they are closed', async () => {
    for (const token of [undefined, 'x']) {
      const ops = await buildOps({ token, metrics: async () => '', queues: [] });
      await ops.listen({ host: '127.0.0.1', port: 0 });
      const { port } = ops.server.address() as AddressInfo;
      const finding = await found('operators’ pages', { OPS_PORT: String(port), OPS_TOKEN: '' });
      await ops.close();
      expect(finding.map(({ verdict }) => verdict)).toEqual(token === undefined ? ['warning'] : []);
    }
  });

  it('that is free is fine, two listeners need two, and an address must belong to this machine', async () => {
    const port = String(await freePort());
    expect(await found('port of the API', { PORT: port })).toMatchObject([
      { verdict: 'ok', found: `127.0.0.1:${port} is free` },
    ]);
    expect(await found('ports', { PORT: port, OPS_PORT: port })).toMatchObject([PROBLEM]);
    expect(await found('port of the API', { PORT: port, HOST: '192.0.2.1' })).toMatchObject([
      { ...PROBLEM, found: 'HOST is not an address of this machine' },
    ]);
  });

  it('of the operators is of little use without a token', async () => {
    expect(await found('operators’ pages', { OPS_TOKEN: '' })).toMatchObject([
      { verdict: 'warning', mend: expect.stringContaining('set OPS_TOKEN') },
    ]);
  });
});

describe('a source', () => {
  it('is reported by its most severe problem: never run, never read, stale, disabled, not configured', async () => {
    await using own = await createDatabase();
    await using store = openStore({ url: own.url, role: 'worker', connections: 1 });
    const register = (id: string) => registerSource(store.db, { id, kind: 'catalogue', adapter: 'hetzner' });
    const sources = {
      DATABASE_URL: own.url,
      CATALOGUE_RATES: 'EUR:1.1',
      HETZNER_URL: 'https://api.hetzner.cloud',
      LINODE_URL: 'http://127.0.0.1:1',
      VULTR_URL: 'http://127.0.0.1:1',
    };
    const of = async (id: string) => (await found(`source ${id}`, sources))[0] ?? expect.unreachable();
    expect(await of('hetzner')).toEqual({
      check: 'source hetzner',
      verdict: 'warning',
      found: 'it never ran, and it has no credentials',
      mend: 'start a worker, or run: fleetbook sync hetzner',
    });
    expect(await found('workers', sources)).toMatchObject([
      { verdict: 'warning', found: 'none has run yet' },
    ]);

    await register('hetzner');
    const failing = await beginRun(store.db, 'hetzner', undefined);
    await finishRun(
      store.db,
      failing,
      'failed',
      undefined,
      new Date().toISOString(),
      '/v1/server_types answers 401: the token is invalid or lacks rights',
    );
    expect(await of('hetzner')).toMatchObject({
      ...PROBLEM,
      found:
        'it was never read well, and it has no credentials; its last run ended as failed: /v1/server_types answers 401: the token is invalid or lacks rights',
      mend: 'give it credentials: set HETZNER_TOKEN. Then run: fleetbook sync hetzner',
    });

    await register('linode');
    const good = await beginRun(store.db, 'linode', undefined);
    await finishRun(store.db, good, 'changed', NO_COUNTS, new Date(Date.now() - 4 * 3_600_000).toISOString());
    expect(await of('linode')).toMatchObject({
      ...PROBLEM,
      found: 'last read well 4 h ago; the limit is 3 h',
      mend: 'start a worker, or run: fleetbook sync linode',
    });
    await store.sql`update sources set verified_at = now() - interval '2 hours' where id = 'linode'`;
    expect(await of('linode')).toMatchObject({
      verdict: 'warning',
      found: expect.stringMatching(
        /^it was read, but readers get no machines of it: its upstream listed none/,
      ),
    });
    await store.sql`
      with p as (insert into providers (id, name) values (78, 'Akamai') returning id),
      r as (insert into regions (provider_id, code, name) select id, 'b', 'B' from p returning id)
      insert into machines (region_id, name, cpu, ram, ram_unit, price, source_id)
      select id, 'm', 2, 4, 'Binary', 0.001, 'linode' from r`;
    expect(await of('linode')).toMatchObject({ verdict: 'ok', found: 'last read well 2 h ago' });

    await store.sql`
      insert into quarantined_rows (source_id, row_key, reason, code, region_code)
      values ('linode', 'r1', 'answers 500', 'unread_region', 'r1')`;
    expect(await of('linode')).toMatchObject({
      verdict: 'warning',
      found: '1 of 1 regions could not be read (r1): answers 500',
    });
    await store.sql`update quarantined_rows set first_seen_at = now() - interval '4 hours'`;
    expect(await of('linode')).toMatchObject({
      ...PROBLEM,
      found: '1 of 1 regions were not read for 3 h (r1): answers 500',
    });
    await store.sql`delete from quarantined_rows`;

    const failed = await beginRun(store.db, 'linode', undefined);
    await finishRun(store.db, failed, 'failed', undefined, new Date().toISOString(), '/types answers 503');
    expect(await of('linode')).toMatchObject({
      verdict: 'warning',
      found: 'its last run failed: /types answers 503',
      mend: expect.stringMatching(/^the worker tries again by itself\. If it keeps failing, wait: /),
    });

    const [batch] = await store.sql<{ id: number }[]>`
      insert into held_batches (source_id, run_id, broken, pattern, worst)
      values ('linode', ${failed.id}, '[]', 'all prices × 100: a unit?', '{"rows": [], "total": 0}') returning id`;
    expect(await of('linode')).toMatchObject({
      verdict: 'warning',
      mend: `see it: fleetbook hold show linode. Then decide: fleetbook hold approve linode ${batch?.id}, or: fleetbook hold reject linode ${batch?.id}`,
    });

    await disableSource(store.db, 'linode', {
      by: 'ada@desk',
      how: 'cli',
      address: 'ada@desk',
      reason: undefined,
    });
    expect(await of('linode')).toMatchObject({
      verdict: 'warning',
      found: expect.stringMatching(/^disabled \d+ (?:s|min) ago by ada@desk$/),
    });

    await register('gone');
    await store.sql`
      with p as (insert into providers (id, name) values (77, 'Acme') returning id),
      r as (insert into regions (provider_id, code, name) select id, 'a', 'A' from p returning id)
      insert into machines (region_id, name, cpu, ram, ram_unit, price, source_id)
      select id, 'm', 2, 4, 'Binary', 0.001, 'gone' from r`;
    expect(await of('gone')).toMatchObject({
      verdict: 'warning',
      mend: 'configure it again, or take its data out of publication: fleetbook source retire gone',
    });

    await claimSlot(store.db, { schedule: 'publish-sweep', slot: '2026-03-01T10:00:00Z' });
    expect(await found('workers', sources)).toMatchObject([{ verdict: 'ok' }]);
    await store.sql`update schedule_slots set claimed_at = now() - interval '10 minutes'`;
    expect(await found('workers', sources)).toMatchObject([
      {
        ...PROBLEM,
        found: 'none runs: the last sign of one is 10 min old',
        mend: expect.stringContaining('fleetbook work'),
      },
    ]);
  });

  it('whose first batch is held has a remedy with the deciding commands', async () => {
    await using own = await createDatabase();
    await using store = openStore({ url: own.url, role: 'worker', connections: 1 });
    await registerSource(store.db, { id: 'vultr', kind: 'catalogue', adapter: 'vultr' });
    const run = await beginRun(store.db, 'vultr', undefined);
    await finishRun(store.db, run, 'held', NO_COUNTS, new Date().toISOString());
    const [batch] = await store.sql<{ id: number }[]>`
      insert into held_batches (source_id, run_id, broken, pattern, worst)
      values ('vultr', ${run.id}, '[]', 'all prices × 100: a unit?', '{"rows": [], "total": 0}') returning id`;
    const sources = { DATABASE_URL: own.url, VULTR_URL: 'http://127.0.0.1:1' };
    expect(await found('source vultr', sources)).toMatchObject([
      { ...PROBLEM, mend: expect.stringContaining(`fleetbook hold approve vultr ${batch?.id}`) },
    ]);
  });
});

describe('the remedy for a failed source', () => {
  const address = { name: 'url', value: 'https://x.test/v9', from: 'environment', variable: 'HETZNER_URL' };
  const source = { id: 'hetzner', settings: [address as SourceSetting], lacksCredentials: true };
  it.each([
    [
      '/types answers 404: the address does not exist any more',
      'correct the address: it is https://x.test/v9, from HETZNER_URL',
    ],
    [
      '/types cannot be reached: the name x.test does not resolve (ENOTFOUND)',
      'check that the address is right and can be reached: it is https://x.test/v9, from HETZNER_URL',
    ],
    ['/types answers 401: the token is invalid or lacks rights', 'give it credentials: set HETZNER_TOKEN'],
    ['/types answers 503', 'wait: the worker retries by itself. If it lasts, contact the provider'],
    ['there is no exchange rate for EUR', 'set CATALOGUE_RATES, or make EXCHANGE_RATES_URL reachable'],
    [
      '/types answers no valid JSON',
      'check the address: it is https://x.test/v9, from HETZNER_URL. If it is right, the provider has changed its answers: update Fleetbook, or report it',
    ],
  ])('whose error is "%s" names what to change', (error, remedy) => {
    expect(failureRemedy(error, source)).toBe(`${remedy}. Then run: fleetbook sync hetzner`);
  });

  it('names the file if the file of sources gives the address', () => {
    const inFile = { name: 'url', value: 'https://x.test', from: 'file', file: 'sources.json' } as const;
    expect(failureRemedy('/ answers 410', { ...source, settings: [inFile] })).toMatch(
      'the url of "hetzner" in sources.json',
    );
    const byDefault = { name: 'url', value: 'https://api.test', from: 'default' } as const;
    expect(failureRemedy('/ answers 404', { ...source, settings: [byDefault] })).toMatch(
      'https://api.test, the default; HETZNER_URL changes it',
    );
  });
});
