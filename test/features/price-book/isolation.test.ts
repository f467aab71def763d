/** Answers over HTTP, with the response cache: an organization sees its own prices, and no effect of another book. */
import { loadAllYaml } from '@kubernetes/client-node/dist/yaml.js';
import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createToken } from '../../../src/db/tokens.ts';
import { decimal, product } from '../../../src/domain/prices/price.ts';
import { bookForTerm, type PriceBookEntry } from '../../../src/domain/prices/price-book.ts';
import { type ExportReader, exportsApi } from '../../../src/features/exports/routes.ts';
import { buildApp } from '../../../src/http/app.ts';
import { nodePrice, nodePriceBy } from '../../../src/market/costs/cost.ts';
import { entriesOf } from '../../../src/snapshot/document/build.ts';
import { addMachine, addOrganization, addProvider, addRegion } from '../../snapshot/rows.ts';
import { sceneForEachTest, type TestReader } from '../../snapshot/scene.ts';
import { runs } from '../../support/random.ts';
import { until } from '../../support/until.ts';

const scene = sceneForEachTest();

const FAMILIES = ['a', 'a1', 'b', 'klein'];
const PRICES = ['0.001', '0.002', '0.0021', '0.004', '0.0041', '0.01'];
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const entries = fc.record({
  provider: maybe(fc.nat(1)),
  region: maybe(fc.nat(2)),
  family: maybe(fc.constantFrom(...FAMILIES)),
  machine: maybe(fc.nat(11)),
  term: maybe(fc.constantFrom('on_demand', 'spot')),
  discount: fc.constantFrom('1', '12.5', '33.3333', '50', '100'),
  fixed: maybe(fc.constantFrom('0', '0.0015', '0.5')),
  ends: fc.constantFrom(undefined, undefined, undefined, 'ended', 'later'),
});
type GivenEntry = typeof entries extends fc.Arbitrary<infer T> ? T : never;
const worlds = fc.record({
  // The last organization has no book.
  books: fc.tuple(
    fc.array(entries, { minLength: 1, maxLength: 6 }),
    fc.array(entries, { minLength: 1, maxLength: 6 }),
    fc.constant<GivenEntry[]>([]),
  ),
  changes: fc.array(fc.record({ organization: fc.nat(1), entry: entries }), { minLength: 2, maxLength: 3 }),
  requests: fc.array(fc.record({ member: fc.nat(2), question: fc.nat(), reader: fc.nat(1) }), {
    minLength: 40,
    maxLength: 40,
  }),
});

const SEARCHES = [
  '',
  'sort=-price&prices=current',
  'sort=price_per_cpu&limit=3',
  'sort=-cpu',
  'max_price=0.0019',
  'fields=name,price',
  'fields=id',
  'prices=list',
] as const;
const PATHS = [
  ...SEARCHES.map((query) => `/v1/machines/search?${query}`),
  '/v1/machines/recommend?cpu=1&ram=1',
  '/v1/machines/recommend?cpu=1&ram=1&prices=list',
  '/v1/providers',
  '/v1/exports/karpenter.yaml?provider=aws&region=one',
  '/v1/exports/karpenter.yaml?provider=aws&region=two',
  '/v1/exports/opencost.csv?provider=2',
  '/v1/exports/opencost.csv?provider=2&prices=list',
];

interface Machine {
  readonly id: number;
  readonly name: string;
  readonly cpu: number;
  readonly price: string;
  readonly regionId: number;
  readonly regionCode: string;
  readonly providerId: number;
}
interface Member {
  readonly id: number;
  readonly token: string;
}
interface Shown {
  readonly id?: number;
  readonly name?: string;
  readonly price?: number;
  readonly price_source?: 'book' | 'current';
  readonly list_price?: number;
}

async function addEntry(
  organizationId: number,
  machines: readonly Machine[],
  given: GivenEntry,
): Promise<void> {
  const machine = given.machine === undefined ? undefined : machines[given.machine % machines.length];
  const regions = [...new Set(machines.map(({ regionId }) => regionId))];
  const isFixed = machine !== undefined && given.fixed !== undefined;
  const [from, to] = {
    none: ['2026-01-01T00:00:00Z', null],
    ended: ['2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'],
    later: ['2999-01-01T00:00:00Z', null],
  }[given.ends ?? 'none'];
  await scene.sql`
    with selector as (
      select ${machine || given.provider === undefined ? null : given.provider + 1}::integer as provider_id,
        ${machine || given.region === undefined ? null : (regions[given.region % regions.length] ?? null)}::integer as region_id,
        ${machine ? null : (given.family ?? null)}::text as family, ${machine?.id ?? null}::integer as machine_id,
        ${given.term ?? null}::text as term
    ), added as (
      insert into price_book_entries (organization_id, provider_id, region_id, family, machine_id, term, discount, price,
        valid_from, valid_to)
      select ${organizationId}, s.*, ${isFixed ? null : given.discount}::numeric, ${isFixed ? (given.fixed ?? null) : null}::numeric,
        ${from ?? null}::timestamptz, ${to ?? null}::timestamptz
      from selector s
      where not exists (
        select from price_book_entries e where e.organization_id = ${organizationId}
          and (e.provider_id, e.region_id, e.family, e.machine_id, e.term) is not distinct from
            (s.provider_id, s.region_id, s.family, s.machine_id, s.term)))
    update organizations set clusters_version = clusters_version + 1 where id = ${organizationId}`;
}

const machinesOf = () => scene.sql<Machine[]>`
  select m.id, m.name, m.cpu, trim_scale(m.price)::text as price, r.id as "regionId", r.code as "regionCode", r.provider_id as "providerId"
  from machines m join regions r on r.id = m.region_id where m.excluded_reason is null order by m.id`;

/** What a search with this query finds by the book, computed from the rows of the database. */
function expected(machines: readonly Machine[], book: readonly PriceBookEntry[], query: string): Shown[] {
  const given = new URLSearchParams(query);
  const [sort, fields] = [given.get('sort') ?? 'price', given.get('fields')?.split(',')];
  const own = bookForTerm(given.get('prices') === 'list' ? [] : book, 'on_demand', Date.now());
  const found = machines.map(({ cpu, ...machine }) => {
    const entry = own.entryOf(machine);
    const price = Number(nodePriceBy(nodePrice(machine.price, null), entry).price);
    const source =
      own.entries.length === 0 ? {} : { price_source: entry ? ('book' as const) : ('current' as const) };
    const list = entry ? { list_price: Number(machine.price) } : {};
    const key = { price, price_per_cpu: price / cpu, cpu }[sort.replace('-', '') as 'price'];
    return { key, id: machine.id, shown: { id: machine.id, name: machine.name, price, ...source, ...list } };
  });
  const sign = sort.startsWith('-') ? -1 : 1;
  return found
    .filter(({ shown }) => shown.price <= Number(given.get('max_price') ?? Infinity))
    .sort((a, b) => sign * (a.key - b.key) || a.shown.price - b.shown.price || a.id - b.id)
    .slice(0, Number(given.get('limit') ?? 50))
    .map(({ shown: { id, name, price, ...rest } }) => {
      if (!fields) return { id, name, price, ...rest };
      return {
        ...(fields.includes('id') ? { id } : {}),
        ...(fields.includes('price') ? { name, price, ...rest } : {}),
      };
    });
}

/** The machines of a region that an entry gives a price, with the price per hour: the file for Karpenter. */
function expectedOverlays(machines: readonly Machine[], book: readonly PriceBookEntry[], query: string) {
  const code = new URLSearchParams(query).get('region');
  const own = bookForTerm(book, 'on_demand', Date.now());
  return machines.flatMap(({ cpu: _, ...machine }) => {
    const entry = machine.providerId === 2 && machine.regionCode === code ? own.entryOf(machine) : undefined;
    const price = entry && nodePriceBy(nodePrice(machine.price, null), entry).price;
    return price === undefined ? [] : [[machine.name, Number(product(price, '60')).toPrecision(9)]];
  });
}

/** The machines of the second provider with their prices per hour: the file for OpenCost. */
function expectedNodes(machines: readonly Machine[], book: readonly PriceBookEntry[], query: string) {
  const isList = new URLSearchParams(query).get('prices') === 'list';
  const own = bookForTerm(isList ? [] : book, 'on_demand', Date.now());
  return machines
    .filter(({ providerId }) => providerId === 2)
    .map(({ cpu: _, ...machine }) => {
      const { price } = nodePriceBy(nodePrice(machine.price, null), own.entryOf(machine));
      return [machine.regionCode, machine.name, Number(product(price, '60')).toPrecision(9)].join();
    })
    .sort();
}

const nodesOf = (file: string) =>
  (parse(file, { columns: false }) as string[][])
    .slice(1)
    .map(([, name, code, , , , price]) => [code, name, Number(price).toPrecision(9)].join())
    .sort();

interface Overlay {
  readonly spec: {
    readonly requirements: readonly { readonly values: readonly string[] }[];
    readonly price: string;
  };
}
const overlaysOf = (file: string) =>
  (loadAllYaml(file) as (Overlay | null)[]).flatMap((each) =>
    each ? [[each.spec.requirements[0]?.values[0], Number(each.spec.price).toPrecision(9)]] : [],
  );

const shownOf = (machines: readonly Shown[]): Shown[] =>
  machines.map(({ id, name, price, price_source, list_price }) => ({
    ...(id === undefined ? {} : { id }),
    ...(name === undefined ? {} : { name }),
    ...(price === undefined ? {} : { price }),
    ...(price_source === undefined ? {} : { price_source }),
    ...(list_price === undefined ? {} : { list_price }),
  }));

async function hasBooks(reader: TestReader, members: readonly Member[]): Promise<void> {
  for (const { id } of members) {
    const [row] = await scene.sql<{ version: string }[]>`
      select clusters_version as version from organizations where id = ${id}`;
    await until(async () => {
      const { document } = await reader.documents.get({ kind: 'price-book', organizationId: id });
      return document?.version === Number(row?.version);
    });
  }
}

const appOf = (reader: TestReader) =>
  buildApp({
    ...reader,
    features: async () => [...(await reader.features()), exportsApi({} as ExportReader, reader.market)],
    readiness: async () => ({ ready: true, checks: {} }),
    logger: false,
    version: '0.0.0',
  });

let ownAnswers = 0;
let ownFiles = 0;

async function checkRequests(
  apps: readonly ReturnType<typeof appOf>[],
  members: readonly Member[],
  requests: readonly { readonly member: number; readonly question: number; readonly reader: number }[],
): Promise<void> {
  const machines = await machinesOf();
  const books = await Promise.all(
    members.map(async ({ id }) =>
      entriesOf((await scene.reader().documents.get({ kind: 'price-book', organizationId: id })).document),
    ),
  );
  /** Path → each answer by member. */
  const seen = new Map<string, Map<number, { etag: string; body: string }>>();
  for (const { member, question, reader } of requests) {
    const path = PATHS[question % PATHS.length] as string;
    const [, query = ''] = path.split('?');
    const headers = { authorization: `Bearer ${members[member]?.token}` };
    const app = apps[reader] ?? expect.unreachable();
    const answer = await app.inject({ url: path, headers });
    expect(answer.statusCode).toBe(200);
    const book = books[member] ?? [];
    const isFile = path.startsWith('/v1/exports');
    const body = isFile ? undefined : answer.json();
    if (path.includes('opencost'))
      expect(nodesOf(answer.body), path).toEqual(expectedNodes(machines, book, query));
    else if (isFile) expect(overlaysOf(answer.body), path).toEqual(expectedOverlays(machines, book, query));
    else if (path === '/v1/providers') expect(body).toHaveLength(2);
    else if (path.includes('/search'))
      expect(shownOf(body.machines), path).toEqual(expected(machines, book, query));
    else {
      const all = expected(machines, book, query);
      const providers = new Map(machines.map(({ id, providerId }) => [id, providerId]));
      const first = [1, 2].flatMap((id) => all.find((shown) => providers.get(shown.id ?? 0) === id) ?? []);
      const wanted = first.sort((a, b) => (a.price ?? 0) - (b.price ?? 0) || (a.id ?? 0) - (b.id ?? 0));
      const found = body.recommendations.map(({ machine, total }: { machine: Shown; total: number }) => ({
        ...shownOf([machine])[0],
        total,
      }));
      const totalOf = ({ price = 0 }: Shown) =>
        Number(Number(product(product(decimal(price) ?? '', '60'), '730')).toPrecision(12));
      expect(found, path).toEqual(wanted.map((shown) => ({ ...shown, total: totalOf(shown) })));
    }
    const etag = String(answer.headers.etag);
    const others = seen.get(path) ?? new Map<number, { etag: string; body: string }>();
    // The validator of another organization matches only for equal bytes.
    for (const other of others.values()) {
      const again = await app.inject({ url: path, headers: { ...headers, 'if-none-match': other.etag } });
      expect(again.statusCode).toBe(other.body === answer.body ? 304 : 200);
      if (again.statusCode === 200) expect(again.body).toBe(answer.body);
    }
    seen.set(path, others.set(member, { etag, body: answer.body }));
    if (answer.body.includes('"price_source":"book"')) ownAnswers += 1;
    if (answer.body.includes('kind: NodeOverlay')) ownFiles += 1;
    if (member === 2 || path.includes('prices=list')) expect(answer.body).not.toContain('price_source');
  }
}

/** Random books and changes of them. */
const BOOKS = runs(8);

it('each organization gets the answers of its own book alone, also after changes of any book', async () => {
  await fc.assert(
    fc
      .asyncProperty(worlds, async ({ books, changes, requests }) => {
        const members: Member[] = [];
        const machines = await machinesOf();
        for (const [i, book] of books.entries()) {
          const id = await addOrganization(scene.sql, `org-${crypto.randomUUID()}`);
          const { token } = await createToken(scene.store.db, {
            organizationId: id,
            scopes: ['machines:read'],
          });
          for (const entry of book) await addEntry(id, machines, entry);
          members[i] = { id, token };
        }
        await scene.publisher.publishDirty();
        await using closing = new AsyncDisposableStack();
        const readers = [await scene.linkedReader(), await scene.linkedReader({ memoryLimit: 400_000 })];
        const apps = readers.map((reader) => {
          const app = appOf(reader);
          closing.defer(() => app.close());
          closing.use(reader);
          return app;
        });
        await checkRequests(apps, members, requests);
        for (const { organization, entry } of changes) {
          await addEntry(members[organization]?.id ?? 0, machines, entry);
          await scene.publisher.publishDirty();
          for (const reader of readers) await hasBooks(reader, members);
          await checkRequests(apps, members, requests.slice(0, 12));
        }
      })
      .beforeEach(async () => {
        if ((await machinesOf()).length > 2) return;
        const second = await addProvider(scene.sql, 2, 'AWS');
        const regions = [
          scene.sample.region,
          await addRegion(scene.sql, second, 'one'),
          await addRegion(scene.sql, second, 'two'),
        ];
        for (let i = 0; i < 10; i++)
          await addMachine(scene.sql, regions[i % 3] ?? 0, {
            name: `${FAMILIES[i % 4]}.${i}`,
            price: PRICES[i % PRICES.length] ?? '1',
            cpu: 1 + (i % 3),
            source: 'cloud',
          });
      }),
    { numRuns: BOOKS, endOnFailure: true },
  );
  // Otherwise nothing was tested.
  expect(ownAnswers).toBeGreaterThan(6 * BOOKS);
  expect(ownFiles).toBeGreaterThan(BOOKS);
});
