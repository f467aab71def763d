/** Costs at any time and with any price book, compared with an independent calculation. */
import Big from 'big.js';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { DiskSizeUnit } from '../../../src/domain/cluster.ts';
import { overlap, type PriceBookEntry } from '../../../src/domain/prices/price-book.ts';
import { PRICE_TERMS, type PriceTerm, TERMS } from '../../../src/domain/prices/term.ts';
import { costDocument, costsDocument, shownCost } from '../../../src/features/costs/documents.ts';
import type { StoredCluster, StoredMachine } from '../../../src/market/costs/inputs.ts';
import {
  clusterSummer,
  type OrganizationInputs,
  organizationCosts,
  pricedMachine,
} from '../../../src/market/costs/organization.ts';
import { bookFor, keptPrice, type PriceQuestion } from '../../../src/market/costs/prices.ts';
import { runs } from '../../support/random.ts';
import { storedMachine } from '../stored-machine.ts';

const Wide = Big();
Wide.DP = 60;
Wide.RM = Wide.roundHalfEven;
const BYTES = { GB: '1e9', TB: '1e12', GiB: 2 ** 30, TiB: 2 ** 40 } as const;
const MONTH = 730 * 60;
const START = Date.parse('2026-01-01T00:00:00Z');
const day = (days: number) => START + days * 86_400_000;

const price = fc.integer({ min: 1, max: 10 ** 9 }).map((units) => new Wide(units).times('1e-12').toFixed());
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });

/** A machine with its list prices by term. */
interface Machine {
  readonly id: number;
  readonly onDemand: string | null;
  readonly terms: { readonly [Term in PriceTerm]?: string };
  readonly cap: string | undefined;
}

const isListed = ({ id }: Machine): boolean => id < 4;
const providerOf = ({ id }: Machine): number => id % 2;

/** Machines 1 to 5, in two regions of two providers. */
const machines = fc
  .tuple(
    ...[1, 2, 3, 4, 5].map((id) =>
      fc
        .record({
          onDemand: fc.option(price),
          terms: fc.dictionary(fc.constantFrom(...TERMS), price),
          cap: maybe(price.map((each) => new Wide(each).times(MONTH * 0.9).toFixed())),
        })
        .map((given): Machine => ({ ...given, id })),
    ),
  )
  .map((all) => new Map(all.map((machine) => [machine.id, machine])));

const nameOf = ({ id }: Machine): string => `m${id}.large`;

/** The machine as the store has it for a term. */
function stored(machine: Machine, term: PriceTerm): StoredMachine {
  const { id, onDemand, terms, cap } = machine;
  const isOnDemand = term === 'on_demand';
  return storedMachine({
    ...{ id, name: nameOf(machine), isListed: isListed(machine) },
    ...{ regionId: providerOf(machine), providerId: providerOf(machine) },
    price: isOnDemand ? onDemand : (terms[term] ?? null),
    monthlyCap: isOnDemand ? (cap ?? null) : null,
  });
}

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

const cluster = (slug: string): fc.Arbitrary<StoredCluster> =>
  fc
    .record({
      machine: fc.integer({ min: 1, max: 5 }),
      shards: fc.integer({ min: 0, max: 5 }),
      replicas: fc.integer({ min: 0, max: 3 }),
      creation: maybe(
        fc.record({ price: maybe(price), cap: maybe(price), asOf: fc.nat(15), since: maybe(fc.nat(15)) }),
      ),
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
    .map(({ machine, disks, creation, ...sizes }) => ({
      ...{ id: slug.charCodeAt(0), name: slug, slug, status: 'Active', sourceId: 's' },
      region: { id: machine % 2, name: `R${machine % 2}`, code: `r${machine % 2}` },
      provider: { id: machine % 2, name: `P${machine % 2}` },
      ...sizes,
      machineId: machine,
      disks: disks.map((disk) => ({
        type: { name: 'd', price: disk.price, unit: disk.priceUnit },
        size: disk.size,
        unit: disk.unit,
        autoscaling: false,
      })),
      createdAt: '2026-01-01T00:00:00.000000Z',
      creation: creation
        ? {
            price: creation.price ?? null,
            monthlyCap: creation.price === undefined ? null : (creation.cap ?? null),
            asOf: new Date(day(creation.asOf)).toISOString(),
            reason: creation.price === undefined ? ('no_price' as const) : null,
            keptSince: creation.since === undefined ? null : new Date(day(creation.since)).toISOString(),
          }
        : null,
    }));
const clusters = fc.tuple(...['a', 'b', 'c', 'd', 'e'].map(cluster));

const world = fc.record({
  machines,
  entries: book,
  clusters,
  term: fc.constantFrom(...PRICE_TERMS),
  at: fc.integer({ min: 0, max: 160 }).map((tenths) => day(tenths / 10)),
});

/** The inputs that the store would give. */
function inputsOf(
  of: ReadonlyMap<number, Machine>,
  all: readonly StoredCluster[],
  entries: readonly PriceBookEntry[],
  question: PriceQuestion,
): OrganizationInputs {
  return {
    clusters: all.map(clusterSummer()),
    machines: new Map([...of].map(([id, machine]) => [id, stored(machine, question.term)])),
    arePublished: true,
    entries,
    time: question,
    marked: { sources: [], regions: [] },
    marks: { lineage: 'l', organization: '1', regions: '', currency: 'USD', asOf: null },
    readAt: 0,
  };
}

/** The own price by the rules of the price book: the most specific entry that applies wins. */
function priceOf(
  machine: Machine,
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
    [undefined, providerOf(machine)].includes(each.regionId) &&
    [undefined, providerOf(machine)].includes(each.providerId) &&
    [undefined, term].includes(each.term) &&
    nameOf(machine).startsWith(each.family ?? '');
  const [best] = entries.filter(fits).sort((a, b) => (rank(a) < rank(b) ? 1 : -1));
  const list = term === 'on_demand' ? machine.onDemand : machine.terms[term];
  const isKnown = isListed(machine) && list !== null && list !== undefined;
  if (best?.price !== undefined && (isKnown || term === 'on_demand'))
    return { minute: new Wide(best.price), cap: undefined, entry: best.id };
  if (!isKnown) return undefined;
  const left = new Wide(100).minus(best?.discount ?? 0).div(100);
  const cap = term === 'on_demand' ? machine.cap : undefined;
  const off = (amount: string) => new Wide(amount).times(left).round(15, Wide.roundHalfEven);
  return { minute: off(list), cap: cap === undefined ? undefined : off(cap), entry: best?.id ?? null };
}

/** The price that the provider left the cluster at, by the same rules: an entry of the book outranks it. */
function paidPrice(
  cluster: StoredCluster,
  machine: Machine | undefined,
  ...rest: [readonly PriceBookEntry[], PriceTerm, number]
) {
  const wanted = machine && priceOf(machine, ...rest);
  const [, term, at] = rest;
  const { creation } = cluster;
  const isBook = wanted !== undefined && wanted.entry !== null;
  if (isBook || term !== 'on_demand' || !creation?.keptSince || creation.price === null)
    return wanted && { ...wanted, source: isBook ? 'book' : 'current' };
  // A price from before the rule is restated by the next run.
  if (Date.parse(creation.asOf) < Date.parse(creation.keptSince) || at < Date.parse(creation.asOf))
    return wanted && { ...wanted, source: 'current' };
  const cap = creation.monthlyCap === null ? undefined : new Wide(creation.monthlyCap);
  return { minute: new Wide(creation.price), cap, entry: null, source: 'creation' };
}

const near = (value: Big, places: number) => value.round(places, Wide.roundHalfEven);
const sumOf = (amounts: readonly (number | null)[]) =>
  amounts.reduce<Big>((sum, each) => sum.plus(each ?? 0), new Wide(0)).toFixed();

it('a cost is the sum of its parts at any time and with any book, and equals an independent calculation', () => {
  fc.assert(
    fc.property(world, ({ machines: of, entries, clusters: all, term, at }) => {
      const question: PriceQuestion = { term, prices: 'own', at: new Date(at).toISOString() };
      const inputs = inputsOf(of, all, entries, question);
      const applying = bookFor(entries, question, at);
      for (const each of all) {
        const kept = keptPrice(each.creation, question, at);
        const found = costDocument(each, pricedMachine(each.machineId, inputs, applying, kept), question);
        const nodes = each.shards * each.replicas;
        const machine = of.get(each.machineId);
        const wanted = paidPrice(each, machine, entries, term, at);
        expect([found.machine.entry, found.machine.price_source]).toEqual([
          wanted?.entry ?? null,
          wanted?.source ?? null,
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
    { numRuns: runs(200) },
  );
});

it('costs of an organization are the sums of its clusters, the most expensive first', async () => {
  await fc.assert(
    fc.asyncProperty(world, async ({ machines: of, entries, clusters: all, term, at }) => {
      const question: PriceQuestion = { term, prices: 'own', at: new Date(at).toISOString() };
      const inputs = inputsOf(of, all, entries, question);
      const applying = bookFor(entries, question, at);
      const document = costsDocument(await organizationCosts(inputs, question, at), question, 1000);
      const shown = { ...document, clusters: document.clusters.map(shownCost) };
      const singles = all.map((each) =>
        costDocument(
          each,
          pricedMachine(each.machineId, inputs, applying, keptPrice(each.creation, question, at)),
          question,
        ),
      );
      const ofSlug = new Map(singles.map((single) => [single.cluster.slug, single]));
      for (const each of shown.clusters)
        expect([each.per_minute, each.per_month, each.complete]).toEqual([
          ofSlug.get(each.slug)?.per_minute,
          ofSlug.get(each.slug)?.per_month,
          ofSlug.get(each.slug)?.complete,
        ]);
      expect(shown.clusters.map(({ slug }) => slug)).toEqual(
        singles
          .toSorted(
            (a, b) => b.known_per_month - a.known_per_month || (a.cluster.slug < b.cluster.slug ? -1 : 1),
          )
          .map((single) => single.cluster.slug),
      );
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
    { numRuns: runs(200) },
  );
});
