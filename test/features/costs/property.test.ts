/** Costs at any time and with any price book, compared with an independent calculation. */
import Big from 'big.js';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { PricedMachine } from '../../../src/db/prices/costs.ts';
import type { ClusterDocument, DiskSizeUnit } from '../../../src/domain/cluster.ts';
import { FACT_FIELDS, type MachineFacts } from '../../../src/domain/machine-facts.ts';
import { bookForTerm, overlap, type PriceBookEntry } from '../../../src/domain/prices/price-book.ts';
import { PRICE_TERMS, TERMS } from '../../../src/domain/prices/term.ts';
import {
  type CostedClusters,
  costedClusters,
  NO_CLUSTERS,
} from '../../../src/features/costs/costed-clusters.ts';
import { type OrganizationCosts, organizationCosts } from '../../../src/features/costs/organization-costs.ts';
import { type PriceQuestion, pricedMachine } from '../../../src/features/costs/prices.ts';
import { costDocument, costsDocument } from '../../../src/features/costs/shown-costs.ts';
import { clustersContent } from '../../../src/snapshot/document/build.ts';
import { encoding } from '../../../src/snapshot/document/format.ts';

const Wide = Big();
Wide.DP = 60;
Wide.RM = Wide.roundHalfEven;
const BYTES = { GB: '1e9', TB: '1e12', GiB: 2 ** 30, TiB: 2 ** 40 } as const;
const MONTH = 730 * 60;
const START = Date.parse('2026-01-01T00:00:00Z');
const day = (days: number) => START + days * 86_400_000;

const price = fc.integer({ min: 1, max: 10 ** 9 }).map((units) => new Wide(units).times('1e-12').toFixed());
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const facts = Object.fromEntries(FACT_FIELDS.map((field) => [field, null])) as unknown as MachineFacts;
const source = { price: { amount: '1', per: 'hour', currency: 'USD' } } as const;

/** Machines 1 to 4, in two regions of two providers. */
const machines = fc
  .tuple(
    ...[1, 2, 3, 4].map((id) =>
      fc
        .record({
          price: fc.option(price),
          terms: fc.dictionary(fc.constantFrom(...TERMS), price),
          cap: maybe(price),
        })
        .map(
          (given): PricedMachine => ({
            ...facts,
            id,
            name: `m${id}.large`,
            regionId: id % 2,
            providerId: id % 2,
            isListed: id !== 4,
            asOf: null,
            currency: 'USD',
            price: given.price,
            terms: {
              terms: Object.fromEntries(
                Object.entries(given.terms).map(([term, each]) => [
                  term,
                  { price: each, upfront: null, source },
                ]),
              ),
              ...(given.cap !== undefined && {
                monthly_cap: {
                  price: new Wide(given.cap).times(MONTH * 0.9).toFixed(),
                  source: { amount: '1', currency: 'USD' },
                },
              }),
            },
          }),
        ),
    ),
  )
  .map((all) => new Map(all.map((machine) => [machine.id, machine])));

const entry = fc
  .record({
    providerId: maybe(fc.constantFrom(0, 1)),
    regionId: maybe(fc.constantFrom(0, 1)),
    family: maybe(fc.constantFrom('m', 'm1', 'm2.')),
    machineId: maybe(fc.constantFrom(1, 2, 3, 4)),
    term: maybe(fc.constantFrom(...PRICE_TERMS)),
    discount: fc.integer({ min: 1, max: 1000 }).map((tenths) => new Wide(tenths).div(10).toFixed()),
    fixed: maybe(price),
    from: fc.integer({ min: 0, max: 8 }),
    days: maybe(fc.integer({ min: 1, max: 8 })),
  })
  .map(({ fixed, from, days, discount, ...selector }): Omit<PriceBookEntry, 'id'> => {
    const isFixed = fixed !== undefined && selector.machineId !== undefined;
    return {
      ...selector,
      discount: isFixed ? undefined : discount,
      price: isFixed ? fixed : undefined,
      from: new Date(day(from)).toISOString(),
      to: days === undefined ? undefined : new Date(day(from + days)).toISOString(),
    };
  });
const book = fc.array(entry, { maxLength: 12 }).map((entries) => {
  const kept: PriceBookEntry[] = [];
  for (const each of entries) {
    const next = { ...each, id: kept.length + 1 };
    if (!overlap([...kept, next])) kept.push(next);
  }
  return kept;
});

const cluster = (slug: string): fc.Arbitrary<ClusterDocument> =>
  fc
    .record({
      machine: fc.integer({ min: 1, max: 5 }),
      shards: fc.integer({ min: 0, max: 5 }),
      replicas: fc.integer({ min: 0, max: 3 }),
      disks: fc.array(
        fc.record({
          price: fc.double({ min: 0, max: 0.00001, noNaN: true }),
          priceUnit: fc.constantFrom<'Binary' | 'Decimal'>('Binary', 'Decimal'),
          size: fc.integer({ min: 1, max: 4000 }),
          unit: fc.constantFrom<DiskSizeUnit>('GB', 'TB', 'GiB', 'TiB'),
        }),
        { maxLength: 2 },
      ),
    })
    .map(({ machine, disks, ...sizes }) => ({
      name: slug,
      slug,
      region: { name: `R${machine % 2}`, code: `r${machine % 2}` },
      provider: { id: machine % 2, name: `P${machine % 2}` },
      status: 'Active',
      ...sizes,
      user: { first_name: '', last_name: '' },
      machine: { id: machine, cpu: 2, ram: 4, ram_unit: 'Binary' as const },
      disks: disks.map((disk) => ({
        type: { name: 'd', price: disk.price, unit: disk.priceUnit },
        size: disk.size,
        unit: disk.unit,
        autoscaling: false,
      })),
      created_at: '2026-01-01T00:00:00.000000',
    }));
const clusters = fc.tuple(...['a', 'b', 'c', 'd', 'e'].map(cluster));

/** One cluster for each slug. */
const latest = (list: readonly ClusterDocument[]) => [
  ...new Map(list.map((each) => [each.slug, each])).values(),
];

const costed = (list: readonly ClusterDocument[], before = NO_CLUSTERS): CostedClusters =>
  costedClusters(encoding(clustersContent(1, 1, list, { sources: [], currency: 'USD' })).document, before);

const world = fc.record({
  machines,
  others: machines,
  entries: book,
  clusters,
  later: fc.array(fc.oneof(...['a', 'c', 'f'].map(cluster)), { maxLength: 3 }).map(latest),
  term: fc.constantFrom(...PRICE_TERMS),
  at: fc.integer({ min: 0, max: 160 }).map((tenths) => day(tenths / 10)),
});

/** The own price by the rules of the price book: the most specific entry that applies wins. */
function priceOf(
  machine: PricedMachine,
  entries: readonly PriceBookEntry[],
  term: PriceQuestion['term'],
  at: number,
) {
  const rank = ({ machineId, family = '', regionId, providerId, term: named }: PriceBookEntry) =>
    [
      machineId === undefined ? 0 : 1,
      family.length,
      ...[regionId, providerId, named].map((of) => (of === undefined ? 0 : 1)),
    ]
      .map((part) => String(part).padStart(3, '0'))
      .join();
  const fits = (each: PriceBookEntry) =>
    Date.parse(each.from) <= at &&
    (each.to === undefined || at < Date.parse(each.to)) &&
    [undefined, machine.id].includes(each.machineId) &&
    [undefined, machine.regionId].includes(each.regionId) &&
    [undefined, machine.providerId].includes(each.providerId) &&
    [undefined, term].includes(each.term) &&
    machine.name.startsWith(each.family ?? '');
  const [best] = entries.filter(fits).sort((a, b) => (rank(a) < rank(b) ? 1 : -1));
  const list = term === 'on_demand' ? machine.price : machine.terms?.terms[term]?.price;
  const isKnown = machine.isListed && list !== null && list !== undefined;
  if (best?.price !== undefined && (isKnown || term === 'on_demand'))
    return { minute: new Wide(best.price), cap: undefined, entry: best.id };
  if (!isKnown) return undefined;
  const left = new Wide(100).minus(best?.discount ?? 0).div(100);
  const cap = term === 'on_demand' ? machine.terms?.monthly_cap?.price : undefined;
  const off = (amount: string) => new Wide(amount).times(left).round(15, Wide.roundHalfEven);
  return { minute: off(list), cap: cap === undefined ? undefined : off(cap), entry: best?.id ?? null };
}

const near = (value: Big, places: number) => value.round(places, Wide.roundHalfEven);
const sumOf = (amounts: readonly (number | null)[]) =>
  amounts.reduce<Big>((sum, each) => sum.plus(each ?? 0), new Wide(0)).toFixed();

it('a cost is the sum of its parts at any time and with any book, and equals an independent calculation', () => {
  fc.assert(
    fc.property(world, ({ machines: stored, entries, clusters: all, term, at }) => {
      const question: PriceQuestion = { term, prices: 'own', at: new Date(at).toISOString() };
      const inputs = { machines: new Map(), stored, book: bookForTerm(entries, term, at), question };
      for (const each of all) {
        const found = costDocument(each, pricedMachine(each.machine.id, inputs), question);
        const nodes = each.shards * each.replicas;
        const machine = stored.get(each.machine.id);
        const wanted = machine && priceOf(machine, entries, term, at);
        expect([found.machine.entry, found.machine.price_source]).toEqual([
          wanted?.entry ?? null,
          wanted ? (wanted.entry === null ? 'list' : 'own') : null,
        ]);
        if (wanted) {
          const full = wanted.minute.times(MONTH);
          const month = wanted.cap?.lt(full) ? wanted.cap : full;
          expect(new Wide(found.machine.per_minute ?? -1).toFixed()).toBe(
            near(wanted.minute.times(nodes), 12).toFixed(),
          );
          expect(new Wide(found.machine.per_month ?? -1).toFixed()).toBe(
            near(month.times(nodes), 8).toFixed(),
          );
        } else expect([found.machine.per_minute, found.complete]).toEqual([null, false]);
        for (const [i, { type, size, unit }] of each.disks.entries()) {
          const whole = new Wide(type.price)
            .times(size)
            .times(BYTES[unit])
            .div(BYTES[type.unit === 'Binary' ? 'GiB' : 'GB'])
            .times(nodes);
          expect(new Wide(found.disks[i]?.per_minute ?? -1).toFixed()).toBe(near(whole, 12).toFixed());
        }
        const parts = [found.machine, ...found.disks];
        expect(sumOf(parts.map((part) => part.per_minute))).toBe(new Wide(found.known_per_minute).toFixed());
        expect(sumOf(parts.map((part) => part.per_month))).toBe(new Wide(found.known_per_month).toFixed());
        expect([found.per_minute, found.per_month]).toEqual(
          found.complete ? [found.known_per_minute, found.known_per_month] : [null, null],
        );
      }
    }),
    { numRuns: 200 },
  );
});

it('costs of an organization are the sums of its clusters, also when some prices and clusters change', () => {
  fc.assert(
    fc.property(world, ({ machines: one, others, entries, clusters: all, later, term, at }) => {
      const question: PriceQuestion = { term, prices: 'own', at: new Date(at).toISOString() };
      const costsOf = (stored: typeof one, wanted: CostedClusters, before?: OrganizationCosts) => {
        const inputs = { machines: new Map(), stored, book: bookForTerm(entries, term, at), question };
        const costs = organizationCosts(wanted, (id) => pricedMachine(id, inputs), before);
        return { costs, shown: costsDocument(costs, question, 1000, undefined) };
      };
      const mixed = new Map(
        [...one].map(([id, machine]) => [id, (id % 2 ? others.get(id) : undefined) ?? machine]),
      );
      const first = costed(all);
      const { costs, shown } = costsOf(one, first);
      expect(costsOf(mixed, first, costs).shown).toEqual(costsOf(mixed, first).shown);
      const kept = all.filter(({ slug }) => later.every((each) => each.slug !== slug));
      const list = [...later, ...kept.slice(1)];
      const second = costed(list, first);
      expect(second.clusters).toEqual(costed(list).clusters);
      const reused = kept.slice(1).map(({ slug }) => first.clusters.find((each) => each.slug === slug));
      expect(second.clusters.filter((each) => first.clusters.includes(each))).toEqual(
        expect.arrayContaining(reused),
      );
      expect(costsOf(mixed, second, costs).shown).toEqual(costsOf(mixed, second).shown);
      const inputs = { machines: new Map(), stored: one, book: bookForTerm(entries, term, at), question };
      const singles = all.map((each) => costDocument(each, pricedMachine(each.machine.id, inputs), question));
      const ofSlug = new Map(singles.map((single) => [single.cluster.slug, single]));
      for (const each of shown.clusters)
        expect([each.per_minute, each.per_month, each.complete]).toEqual([
          ofSlug.get(each.slug)?.per_minute,
          ofSlug.get(each.slug)?.per_month,
          ofSlug.get(each.slug)?.complete,
        ]);
      for (const parts of [shown.clusters, shown.providers, shown.regions]) {
        expect(sumOf(parts.map((part) => part.known_per_minute))).toBe(
          new Wide(shown.total.known_per_minute).toFixed(),
        );
        expect(sumOf(parts.map((part) => part.known_per_month))).toBe(
          new Wide(shown.total.known_per_month).toFixed(),
        );
      }
      expect(shown.total.complete).toBe(singles.every(({ complete }) => complete));
    }),
    { numRuns: 200 },
  );
});
