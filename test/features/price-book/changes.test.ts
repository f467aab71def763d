import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { auditRecords } from '../../../src/features/console/queries/audit.ts';
import type { GivenEntry, PriceBookFile } from '../../../src/features/price-book/answers.ts';
import { priceBookChanges } from '../../../src/features/price-book/changes.ts';
import { readPriceBookFile } from '../../../src/features/price-book/entries.ts';
import { fileOf, readNames, readPriceBook } from '../../../src/features/price-book/queries.ts';
import { entriesOf } from '../../../src/snapshot/document/build.ts';
import { openCommandScene } from '../../cli/scene.ts';
import { addMachine, addProvider, addRegion, addSample, type Sample } from '../../snapshot/rows.ts';
import type { Scene, TestReader } from '../../snapshot/scene.ts';
import { runCommand } from '../../support/run-command.ts';
import { until } from '../../support/until.ts';

const closing = new AsyncDisposableStack();
let env: Record<string, string>;
let scene: Scene;
let sample: Sample;
let reader: TestReader;
let organizations = 0;

beforeAll(async () => {
  ({ scene, env } = closing.use(await openCommandScene()));
  sample = await addSample(scene.sql);
  await scene.sql`update lineage set currency = 'USD'`;
  // Another provider has a region and a machine of the same names.
  const other = await addProvider(scene.sql, 2, 'Other');
  await addMachine(scene.sql, await addRegion(scene.sql, other, 'zrh'), { name: 'klein-ß', source: 'cloud' });
  await addRegion(scene.sql, other, 'only');
  await scene.publisher.publishDirty();
  reader = scene.reader();
  await reader.catalogue.providers();
  await until(() => reader.link.linked);
});
afterAll(() => closing.disposeAsync());

const BY = { by: 'ada', how: 'cli', address: 'test', reason: 'a contract' } as const;
const changes = () => priceBookChanges(scene.store.db, BY);
const newOrganization = async () => {
  const slug = `org-${++organizations}`;
  const [row] = await scene.sql<{ id: number }[]>`
    insert into organizations (slug, name) values (${slug}, ${slug}) returning id`;
  return { id: row?.id ?? 0, slug, name: slug };
};
type Organization = Awaited<ReturnType<typeof newOrganization>>;
const add = async ({ slug }: Organization, given: GivenEntry) =>
  changes().add(slug, given, await readNames(scene.store.db, [given]));
const replace = async ({ slug }: Organization, file: PriceBookFile) =>
  changes().replace(slug, file, await readNames(scene.store.db, file.entries));
const stored = async (organization: Organization) =>
  (await readPriceBook(scene.store.db, organization, true)).entries.toReversed();
const version = async ({ id }: Organization) =>
  (await scene.sql`select clusters_version as version from organizations where id = ${id}`)[0]?.version;
const audited = async ({ slug }: Organization) =>
  (await auditRecords(scene.store.db, { subject: { kind: 'organization', id: slug } })).rows;

const CLOUD = { provider: 'wölkchen 🚀', discount: '10' };
const PAST = '2026-01-01';

describe('a change of a price book', () => {
  it('stores entries by the names that people use, and audits them', async () => {
    const organization = await newOrganization();
    await add(organization, CLOUD);
    await add(organization, {
      provider: '1',
      region: 'zrh',
      family: 'kl',
      term: 'spot',
      discount: '12.50',
      from: PAST,
    });
    await add(organization, {
      machine: 'klein-ß @ zrh',
      provider: 'Other',
      price: '0.0010',
      to: '2099-01-01T01:00:00+01:00',
    });
    await add(organization, { machine: String(sample.big), discount: '100' });
    await add(organization, { region: 'only', discount: '1' });
    expect(await stored(organization)).toMatchObject([
      { provider: 'Wölkchen 🚀', discount: '10', state: 'applies' },
      {
        provider: 'Wölkchen 🚀',
        region: 'zrh',
        family: 'kl',
        term: 'spot',
        discount: '12.5',
        from: '2026-01-01T00:00:00.000Z',
      },
      { provider: 'Other', machine: 'klein-ß@zrh', price: '0.001', to: '2099-01-01T00:00:00.000Z' },
      { provider: 'Wölkchen 🚀', machine: '大@zrh', discount: '100' },
      { provider: 'Other', region: 'only', discount: '1' },
    ]);
    const [last] = await audited(organization);
    expect(last).toMatchObject({
      by: 'ada',
      action: 'price.add',
      reason: 'a contract',
      details: { region: 'only', discount: '1' },
    });
    expect(await audited(organization)).toHaveLength(5);
  });

  it.each<[GivenEntry, RegExp]>([
    [{ provider: 'AWX', discount: '1' }, /^provider "AWX" is unknown; give one of Other, Wölkchen/],
    [
      { provider: 'Other', region: 'abc', discount: '1' },
      /^region "abc" is unknown; the provider has zrh, only$/,
    ],
    [{ region: 'zrh', discount: '1' }, /^region "zrh" exists with several providers; give the provider: /],
    [{ machine: 'none@zrh', price: '1' }, /^machine "none@zrh" is unknown; give name@region or an id/],
    [{ machine: '999999', price: '1' }, /^machine "999999" is unknown/],
    [{ machine: 'klein-ß@zrh', price: '1' }, /^machine "klein-ß@zrh" exists with several providers/],
    [{ term: 'monthly', discount: '1' }, /^term "monthly" is unknown; give one of on_demand, spot, /],
    [{ discount: '-5' }, /^discount "-5" is negative; give a percentage above 0 and at most 100/],
    [{ discount: '0' }, /^discount "0" is zero/],
    [{ discount: '100.01' }, /^discount "100.01" is too large/],
    [{ discount: '1e1' }, /^discount "1e1" is too large or/],
    [{ discount: 'ten' }, /^discount "ten" is no decimal/],
    [{ price: '0.1' }, /^price is given without a machine; name the machine, or give a discount$/],
    [{ price: '-0.1', machine: '1' }, /^price "-0.1" is negative/],
    [{ price: '0.1', discount: '1', machine: '1' }, /^price is given with a discount; give one of them$/],
    [{ family: 'm5.' }, /^discount and price are both missing/],
    [{ family: ' ', discount: '1' }, /^family " " cannot begin a name/],
    [{ family: 'a', machine: '1', discount: '1' }, /^family is given with a machine/],
    [{ region: 'zrh', machine: '1', discount: '1' }, /^region is given with a machine/],
    [{ discount: '1', from: 'soon' }, /^from "soon" is no time; give a date or an RFC 3339 time/],
    [{ discount: '1', from: '2026-02-30' }, /^from "2026-02-30" is no time/],
    [
      { discount: '1', from: '2027-01-01', to: '2027-01-01' },
      /^to "2027-01-01" is not after from "2027-01-01"/,
    ],
    [{ discount: '1', to: '2020-01-01' }, /^to "2020-01-01T00:00:00.000Z" is past, and the entry begins now/],
    [CLOUD, /^from .* of a new entry overlaps entry \d+, .* applies without end; end that one first/],
  ])('refuses %j and stores nothing', async (given, message) => {
    const organization = await newOrganization();
    await add(organization, CLOUD);
    const before = [await stored(organization), await version(organization), await audited(organization)];
    await expect(add(organization, given)).rejects.toThrow(message);
    expect([await stored(organization), await version(organization), await audited(organization)]).toEqual(
      before,
    );
  });

  it('refuses an unknown or deleted organization', async () => {
    const gone = await newOrganization();
    await scene.sql`update organizations set deleted_at = now() where id = ${gone.id}`;
    for (const slug of [gone.slug, 'none'])
      await expect(add({ ...gone, slug }, CLOUD)).rejects.toThrow(
        `organization "${slug}" does not exist, or is deleted`,
      );
  });

  it('ends an entry once, and removes one that has not begun', async () => {
    const [organization, other] = [await newOrganization(), await newOrganization()];
    const [first, later] = [
      await add(organization, CLOUD),
      await add(organization, { discount: '5', from: '2099-01-01' }),
    ];
    const end = (id: number, at?: string, of = organization) => changes().end(of.slug, id, at);
    await expect(end(first, undefined, other)).rejects.toThrow(
      `entry ${first} is not in the book of ${other.slug}`,
    );
    await expect(end(first, PAST)).rejects.toThrow('at 2026-01-01T00:00:00.000Z is past; past prices stay');
    expect(await end(first, '2098-01-01')).toBe('2098-01-01T00:00:00.000Z');
    await expect(end(first, '2099-01-01')).rejects.toThrow('is not before the present end');
    expect(await end(first)).toMatch(/^20\d\d-/);
    await expect(end(first)).rejects.toThrow(/^entry \d+ ended at /);
    expect(await end(later)).toBeNull();
    expect(await stored(organization)).toMatchObject([{ id: first, state: 'ended' }]);
    // The same selection may begin again.
    expect(await add(organization, CLOUD)).toBeGreaterThan(first);
  });

  it('of one book is made one at a time: concurrent equal entries are stored once', async () => {
    const organization = await newOrganization();
    const results = await Promise.allSettled(Array.from({ length: 4 }, () => add(organization, CLOUD)));
    expect(results.map(({ status }) => status).sort()).toEqual([
      'fulfilled',
      'rejected',
      'rejected',
      'rejected',
    ]);
    expect(await stored(organization)).toHaveLength(1);
  });
});

describe('an import', () => {
  it('replaces the book: equal entries keep their ids, others end, and ended ones stay', async () => {
    const organization = await newOrganization();
    const kept = await add(organization, { ...CLOUD, from: PAST });
    const gone = await add(organization, { family: 'kl', discount: '3', from: PAST });
    const later = await add(organization, { family: 'x', discount: '3', from: '2099-01-01' });
    const limited = await add(organization, { term: 'spot', discount: '4', from: PAST });
    const before = await stored(organization);
    const { entries } = fileOf(await readPriceBook(scene.store.db, organization, false));
    const raised = await version(organization);
    expect(await replace(organization, { entries })).toEqual({
      added: [],
      changed: [],
      ended: [],
      removed: [],
      kept: 4,
    });
    expect([await stored(organization), await version(organization)]).toEqual([before, raised]);
    const file = readPriceBookFile(
      JSON.stringify({
        organization: organization.slug,
        entries: [
          CLOUD,
          { term: 'spot', discount: 4, to: '2099-01-01', from: PAST, family: null },
          { discount: 7.5 },
        ],
      }),
    );
    const done = await replace(organization, file);
    expect(done).toMatchObject({ changed: [limited], ended: [gone], removed: [later], kept: 1 });
    expect(await stored(organization)).toMatchObject([
      { id: kept, from: '2026-01-01T00:00:00.000Z', state: 'applies' },
      { id: gone, state: 'ended' },
      { id: limited, to: '2099-01-01T00:00:00.000Z' },
      { id: done.added[0], discount: '7.5' },
    ]);
    expect((await audited(organization))[0]).toMatchObject({
      action: 'price.import',
      details: { ended: [gone], removed: [later], added: [{ discount: '7.5', entry: done.added[0] }] },
    });
  });

  it.each<[string, RegExp]>([
    ['{', /^entries cannot be read: .*; give an object with "entries"/],
    ['[]', /^entries is missing/],
    ['{"entries":{}}', /^entries is not a list/],
    ['{"entries":[1]}', /^entry 1: entries has a value that is no object/],
    [
      '{"entries":[],"prices":[]}',
      /^entries has the unknown field "prices"; give organization, currency, entries/,
    ],
    [
      '{"entries":[{"discount":"1","until":"2099-01-01"}]}',
      /^entry 1: entries has the unknown field "until"/,
    ],
    ['{"entries":[{"discount":"1"},{"discount":true}]}', /^entry 2: discount is no text/],
    ['{"currency":"EUR","entries":[]}', /^currency of the file is "EUR", and prices are in USD/],
    [
      '{"entries":[{"family":"a","discount":"1"},{"discount":"120"}]}',
      /^entry 2: discount "120" is too large/,
    ],
    [
      '{"entries":[{"discount":"1","to":"2099-01-01"},{"discount":"2"}]}',
      /^from .* of a new entry overlaps a new entry/,
    ],
    [
      '{"entries":[{"provider":"1","discount":"20","from":"2026-01-01"}]}',
      /overlaps entry \d+|of entry \d+ overlaps/,
    ],
    [
      '{"entries":[{"provider":"1","discount":"10","from":"2026-01-01","to":"2026-01-02"}]}',
      /^entry 1: to .* is past, and the entry applies/,
    ],
  ])('refuses %s and changes nothing', async (text, message) => {
    const organization = await newOrganization();
    await add(organization, { ...CLOUD, from: PAST });
    const before = [await stored(organization), await version(organization)];
    const change = async () => replace(organization, readPriceBookFile(text));
    await expect(change()).rejects.toThrow(message);
    expect([await stored(organization), await version(organization)]).toEqual(before);
  });
});

describe('fleetbook price', () => {
  const price = (...args: string[]) => runCommand(['price', ...args], env);

  it('adds, lists, exports, imports and ends, and readers get each change', async () => {
    const { id, slug } = await newOrganization();
    await scene.publisher.publishDirty();
    const discounts = async () =>
      entriesOf((await reader.documents.get({ kind: 'price-book', organizationId: id })).document).map(
        ({ discount, to }) => `${discount} ${to === undefined ? 'open' : 'ends'}`,
      );
    expect(await discounts()).toEqual([]);
    const of = ['--org', slug, '--by', 'ada'];
    const added = await price(
      'add',
      ...of,
      '--provider',
      'Other',
      '--discount',
      '12.5',
      '--reason',
      'contract 7',
    );
    expect(added).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^entry \d+ of org-\d+ is added and applies\n$/),
      stderr: '',
    });
    await until(async () => (await discounts()).join() === '12.5 open');
    expect((await price('list', '--org', slug)).stdout).toMatch(
      /^ID +MACHINES +TERM +PRICE[\s\S]*Other +every term +12.5 % off/,
    );
    const exported = await price('export', '--org', slug);
    const file = join(tmpdir(), `price-book-${slug}.json`);
    await writeFile(file, exported.stdout);
    expect((await price('import', file, ...of)).stdout).toContain(
      '0 added, 0 with another end, 0 ended, 0 removed before they began, 1 kept',
    );
    await writeFile(file, JSON.stringify({ entries: [{ family: 'kl', discount: '3' }] }));
    expect((await price('import', file, ...of, '--json')).code).toBe(0);
    await until(async () => (await discounts()).join() === '12.5 ends,3 open');
    const [last] = await stored({ id, slug, name: slug }).then((all) => all.slice(-1));
    expect((await price('delete', String(last?.id), ...of)).stdout).toMatch(/^entry \d+ ends at 20/);
    await until(async () => (await discounts()).join() === '12.5 ends,3 ends');
  });

  it('prints what is wrong, and how to correct it', async () => {
    const { slug } = await newOrganization();
    expect(await price('add', '--org', slug, '--provider', 'Other', '--discount', '0')).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'fleetbook: discount "0" is zero; give a percentage above 0 and at most 100, with at most 4 decimals, e.g. 12.5\n',
    });
    expect(await price('list', '--org', slug)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('has no own prices; add one'),
    });
  });
});
