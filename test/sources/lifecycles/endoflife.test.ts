import { describe, expect, it } from 'vitest';
import { byEngine, type Cycle, lifecycleOf, PRODUCTS } from '../../../src/domain/lifecycle.ts';
import { openSourceHttp } from '../../../src/sources/http/http.ts';
import { adapter } from '../../../src/sources/lifecycles/endoflife.ts';
import type { CycleItem } from '../../../src/sources/source.ts';
import { type FakeUpstream, fakeUpstream } from '../../support/fake-upstream.ts';
import { needsRecorded, RECORDED } from '../../support/payloads.ts';
import { expectProducts, product, release } from './products.ts';

function read({ url }: FakeUpstream): Promise<CycleItem[]> {
  const http = openSourceHttp({
    baseUrl: `${url}/api/v1`,
    credentials: adapter.credentials,
    deadlineMs: 5000,
    maxBytes: 1_000_000,
  });
  return Array.fromAsync(adapter.cycles({ http }));
}

async function itemsOf(given: Parameters<typeof expectProducts>[1]): Promise<CycleItem[]> {
  await using upstream = await fakeUpstream();
  expectProducts(upstream, given);
  return await read(upstream);
}

const ofPostgres = async (row: unknown) =>
  (await itemsOf({ postgresql: [row] })).find(({ kind, ...item }) =>
    kind === 'rejected' ? true : (item as { cycle: Cycle }).cycle.engine === 'postgresql',
  );

describe('endoflife.date', () => {
  it('has the cycles of every product, with the phases that its publisher knows', async () => {
    const valkey = release('8.1', '2030-03-31', { eoasFrom: '2028-03-31', isEoas: false });
    const mariadb = release('5.1', '2015-02-01', { isEol: true, isEoes: true, eoesFrom: '2015-02-02' });
    const opensearch = release('1', null, { isEol: true, latest: null });
    const items = await itemsOf({ valkey: [valkey], mariadb: [mariadb], opensearch: [opensearch] });
    expect(items).toHaveLength(Object.keys(PRODUCTS).length);
    const common = { releasedOn: '2020-01-02', activeUntil: null, extendedUntil: null, hasEnded: false };
    expect(items).toEqual(
      expect.arrayContaining([
        {
          kind: 'cycle',
          cycle: {
            ...{ ...common, engine: 'valkey', name: '8.1', activeUntil: '2028-03-31' },
            ...{ endOfLife: '2030-03-31', latest: '8.1.9' },
          },
        },
        {
          kind: 'cycle',
          cycle: {
            ...{ ...common, engine: 'mariadb', name: '5.1', endOfLife: '2015-02-01' },
            ...{ extendedUntil: '2015-02-02', hasEnded: true, latest: '5.1.9' },
          },
        },
        {
          kind: 'cycle',
          cycle: {
            ...common,
            engine: 'opensearch',
            name: '1',
            endOfLife: null,
            hasEnded: true,
            latest: null,
          },
        },
      ]),
    );
    expect(items.map((item) => item.kind === 'cycle' && item.cycle.engine)).toContain('kafka');
  });

  it.each([
    ['a date that does not exist', { eolFrom: '2027-02-30' }, 'eolFrom must be a date'],
    ['a date that PostgreSQL cannot store', { eolFrom: '0000-01-01' }, 'eolFrom must be a date'],
    ['true for a date, as in the API v0', { eolFrom: true }, 'eolFrom must be a date'],
    ['no mark of its end', { isEol: undefined }, 'isEol is missing'],
    ['no field for its end', { eolFrom: undefined }, 'eolFrom'],
    ['another type of mark', { isEol: '2027-01-01' }, 'isEol must be true or false'],
    ['a name that is no version', { name: 'latest' }, 'name must be a version'],
    ['a time of release', { releaseDate: 20_200_102 }, 'releaseDate must be a date'],
  ])('rejects a release with %s', async (_, fields, reason) => {
    expect(await ofPostgres(release('16', '2028-11-09', fields))).toEqual({
      kind: 'rejected',
      key: expect.stringMatching(/^postgresql /),
      reason: expect.stringContaining(reason),
    });
  });

  it('is not read without each product, or by an answer of another one', async () => {
    const answers: readonly [unknown, RegExp][] = [
      [product('mysql', [release('1', null)]), /result\.name must be postgresql; it is mysql/],
      [product('postgresql', []), /releases lists nothing/],
      [product('postgresql', Array(1001).fill(release('1', null))), /more than 1000 rows/],
      [
        { ...product('postgresql', [release('1', null)]), schema_version: '2.0.0' },
        /schema_version must be 1/,
      ],
      [[{ cycle: '16', eol: '2028-11-09' }], /./],
      [{ result: null }, /./],
    ];
    for (const [json, message] of answers)
      await expect(itemsOf({ postgresql: { ...(json as object) } })).rejects.toMatchObject({
        kind: 'invalid',
        message: expect.stringMatching(message),
      });
    await using upstream = await fakeUpstream();
    upstream.expect({ path: '/api/v1/products/clickhouse/' }, { status: 404, json: {} });
    await expect(read(upstream)).rejects.toMatchObject({ kind: 'gone' });
  });

  it('is not read from an answer that was cut', async () => {
    await using upstream = await fakeUpstream();
    const json = product('clickhouse', [release('25.8', null)]);
    upstream.expect({ path: '/api/v1/products/clickhouse/', times: 'any' }, { json, cutAfter: 200 });
    await expect(read(upstream)).rejects.toMatchObject({ kind: 'retry' });
  });
});

describe('answers of endoflife.date of 2026-08-22', needsRecorded, () => {
  const derived = () =>
    Object.fromEntries(
      Object.values(PRODUCTS).map((name) => [
        name,
        RECORDED.json(`next/endoflife/api-v1-derived/${name}.json`),
      ]),
    );

  it('are read without a rejected release, and agree with the recorded API v0', async () => {
    const items = await itemsOf(derived());
    expect(items.filter(({ kind }) => kind === 'rejected')).toEqual([]);
    const cycles = byEngine(items.flatMap((item) => (item.kind === 'cycle' ? [item.cycle] : [])));
    expect(Object.keys(PRODUCTS).toSorted()).toEqual([...cycles.keys()].toSorted());
    for (const engine of ['mariadb', 'mysql', 'postgresql', 'redis', 'valkey'] as const) {
      const rows = RECORDED.json(`next/endoflife/api-v0/${engine}.json`) as {
        cycle: string;
        eol: string | boolean;
      }[];
      expect(rows.length).toBeGreaterThan(4);
      for (const { cycle, eol } of rows) {
        const found = cycles.get(engine)?.find((each) => each.cycle.name === cycle)?.cycle;
        // `eol: false` of the API v0: the cycle is alive, and no end is announced.
        expect([cycle, found?.endOfLife]).toEqual([cycle, typeof eol === 'string' ? eol : null]);
      }
    }
  });

  it.each([
    ['postgresql', '14.15', '14', '2026-11-12'],
    ['postgresql', '9.6.24', '9.6', '2021-11-11'],
    ['postgresql', '17', '17', '2029-11-08'],
    ['redis', '8.0.3', '8.0', '2026-12-01'],
    ['redis', '8.10.1', '8.10', null],
    // Only Confluent's paid support has a day.
    ['kafka', '4.0.0', '4.0', null],
    ['mysql', '9.7.1', '9.7', '2034-04-21'],
    ['clickhouse', '26.4.1', '26.4', '2026-07-22'],
    ['opensearch', '1.3.20', '1', '2025-05-06'],
    ['mongodb', '8.0', '8.0', '2029-10-31'],
  ])('have the end of %s %s', async (engine, version, name, endOfLife) => {
    const items = await itemsOf(derived());
    const cycles = byEngine(items.flatMap((item) => (item.kind === 'cycle' ? [item.cycle] : [])));
    const found = lifecycleOf({ engine, version, endOfLife: null }, cycles, '2026-08-22');
    expect([found.cycle?.name, found.endOfLife]).toEqual([name, endOfLife]);
  });
});
