/** Catalogues in memory, a naive search of them, and their indexes. */
import fc from 'fast-check';
import type { MachineFacts } from '../../src/domain/machine-facts.ts';
import type { BookForTerm } from '../../src/domain/prices/price-book.ts';
import type { StoredRegionPrice } from '../../src/domain/prices/region-price.ts';
import { type Continent, continentOf } from '../../src/domain/region-country.ts';
import { type CatalogueIndex, type RegionUpdate, updateIndex } from '../../src/market/catalogue-index.ts';
import { GIGABYTE } from '../../src/market/dictionary.ts';
import type { Filters, Position, Sort } from '../../src/market/filters.ts';
import { ownView, type PricedIndex } from '../../src/market/price-books.ts';
import { withOrder } from '../../src/market/rows.ts';
import { ColumnsBuilder, type MachineWithFacts, readColumns } from '../../src/snapshot/document/columns.ts';

export interface Machine extends MachineWithFacts {
  readonly provider: number;
  readonly region: number;
}

/** Region id → its machines. Regions 1 to 3 are of provider 1, the others of provider 2. */
export type World = ReadonlyMap<number, readonly Machine[]>;

/** A machine of region 1 with 2 CPUs and 4 GiB, whose facts are unknown unless given. */
export function plainMachine({
  facts,
  terms = null,
  ...given
}: Pick<Machine, 'id' | 'price'> & {
  readonly facts?: Partial<MachineFacts>;
  readonly terms?: Machine['terms'];
}): Machine {
  const none = { architecture: null, generation: null, cpuKind: null, localDisk: null, network: null };
  const others = { includedTraffic: null, includedIpv4: null, orderableUntil: null, retiresAt: null };
  const size = { cpu: 2, ram: 4, ramUnit: 'Binary' } as const;
  const place = { region: 1, provider: 1 };
  return {
    ...size,
    ...place,
    name: `m${given.id}`,
    soldOut: false,
    terms,
    ...given,
    facts: { ...none, ...others, ...facts },
  };
}

export const providerOf = (region: number): number => (region <= 3 ? 1 : 2);

/** The country of a region; that of region 5 is unknown. */
const countryOf = (region: number): string | undefined => [undefined, 'DE', 'US', 'FR', 'US'][region];

/** Runs a generator to its end. */
export function atOnce<T>(work: Generator<void, T>): T {
  for (;;) {
    const turn = work.next();
    if (turn.done) return turn.value;
  }
}

export function updateOf(
  region: number,
  machines: readonly Machine[],
  version = 1,
  prices?: readonly StoredRegionPrice[],
): RegionUpdate {
  const place = {
    region: { id: region, name: `Region ${region}`, code: `r${region}` },
    provider: { id: providerOf(region), name: `Provider ${providerOf(region)}` },
    country: countryOf(region),
  };
  const head = { ...place.region, country: place.country ?? null, provider: place.provider, version };
  const builder = new ColumnsBuilder(head, prices);
  for (const machine of inOrder(machines)) builder.add(machine);
  const columns = readColumns(builder.content({ sources: [] }).body);
  if (!columns) throw new Error('unreachable: what was built can be read');
  const hash = JSON.stringify(machines);
  return { ...place, version, hash, sources: [`cloud/${region}`], currency: 'USD', columns };
}

const inOrder = (machines: readonly Machine[]) =>
  machines.toSorted((a, b) => a.price - b.price || a.id - b.id);

export function indexOf(before: CatalogueIndex, world: World): CatalogueIndex {
  const updates = [...world].map(([region, machines]) => updateOf(region, machines));
  return atOnce(updateIndex(before, updates));
}

/** Returns the index at the prices of a book. @param before the view of an earlier index, with the same book */
export function pricedBy(
  list: CatalogueIndex,
  book: BookForTerm,
  by: Sort['by'] = 'price',
  before?: CatalogueIndex,
): PricedIndex {
  if (book.entries.length === 0) return { view: list, list, book: undefined };
  const view = atOnce(ownView(before, list, book));
  if (by === 'price' || view.rows.orders[by]) return { view, list, book };
  const kinds = { kindOf: view.kindOf, kinds: view.dictionary.kinds };
  return { view: { ...view, rows: atOnce(withOrder(view.rows, by, kinds)) }, list, book };
}

const ramBytes = ({ ram, ramUnit }: MachineWithFacts): number => ram * GIGABYTE[ramUnit];

/** Returns the sort key of a machine by the contract. */
function keyOf(machine: Machine, { by }: Sort): number {
  switch (by) {
    case 'price':
      return machine.price;
    case 'price_per_cpu':
      return machine.price / machine.cpu;
    case 'price_per_ram':
      return machine.price / ramBytes(machine);
    case 'cpu':
      return machine.cpu;
    case 'ram':
      return ramBytes(machine);
  }
}

/** Returns every machine that fits, in order. The index must agree. */
export function naive(world: World, filters: Filters, sort: Sort, after?: Position): Machine[] {
  const sign = sort.descending ? -1 : 1;
  const compare = (a: Position, b: Position) => sign * (a.key - b.key) || a.price - b.price || a.id - b.id;
  const position = (machine: Machine) => ({
    key: keyOf(machine, sort),
    price: machine.price,
    id: machine.id,
  });
  return [...world.values()]
    .flat()
    .filter((machine) => fits(machine, filters) && (!after || compare(position(machine), after) > 0))
    .sort((a, b) => compare(position(a), position(b)));
}

function fits(machine: Machine, filters: Filters): boolean {
  const { cpu, price, name, facts } = machine;
  const ram = (filters.isRamAsSold ? machine.ram : ramBytes(machine)) * 1000;
  const within = (value: number, min: number | undefined, max: number | undefined) =>
    (min === undefined || value >= min) && (max === undefined || value <= max);
  return (
    within(cpu, filters.minCpu, filters.maxCpu) &&
    within(ram, filters.minRam, filters.maxRam) &&
    within(price, undefined, filters.maxPrice) &&
    (filters.minRamPerCpu === undefined || ram >= filters.minRamPerCpu * cpu) &&
    (filters.maxRamPerCpu === undefined || ram <= filters.maxRamPerCpu * cpu) &&
    (filters.minDisk === undefined || (facts.localDisk ?? 0) >= filters.minDisk) &&
    (filters.providers?.includes(machine.provider) ?? true) &&
    (filters.regions?.includes(machine.region) ?? true) &&
    (filters.countries?.includes(countryOf(machine.region) ?? '') ?? true) &&
    (filters.continents?.some((continent) => continent === continentOf(countryOf(machine.region))) ?? true) &&
    (filters.name === undefined || name.toLowerCase().includes(filters.name.toLowerCase())) &&
    (filters.architecture === undefined || facts.architecture === filters.architecture) &&
    (filters.cpuKind === undefined || facts.cpuKind === filters.cpuKind) &&
    (filters.withSoldOut === true || !machine.soldOut)
  );
}

/** Few values, so that many machines have equal facts, prices and parts of names. */
const facts: fc.Arbitrary<MachineFacts> = fc.record({
  architecture: fc.constantFrom(null, 'x86_64', 'arm64'),
  generation: fc.constantFrom(null, '7'),
  cpuKind: fc.constantFrom(null, 'dedicated', 'shared'),
  localDisk: fc.constantFrom(null, 0, 80, 160),
  network: fc.constantFrom(null, 1000),
  includedTraffic: fc.constantFrom(null, 20_000),
  includedIpv4: fc.constantFrom(null, 0, 1),
  orderableUntil: fc.constantFrom(null, '2027-03-01T00:00:00Z'),
  retiresAt: fc.constantFrom(null, '2027-03-01T00:00:00Z', '2027-09-30T23:59:59Z'),
});
const NAMES = ['a', 'A1', 'b.large', 'B.Large-a', 'ß', 'ünit', 'x\ny', 'c5', 'C5.metal', 'aaa'];

const size = fc.record({
  cpu: fc.integer({ min: 1, max: 4 }),
  ram: fc.integer({ min: 1, max: 4 }),
  ramUnit: fc.constantFrom<MachineWithFacts['ramUnit']>('Binary', 'Decimal'),
  price: fc.constantFrom(0.1, 0.2, 0.3, 0.30000000000000004, 0.6, 1 / 3),
  facts,
  soldOut: fc.constantFrom(false, false, false, true),
});

/** The machines of a region. A name occurs once. */
export const machinesOf = (region: number): fc.Arbitrary<Machine[]> =>
  fc
    .uniqueArray(fc.tuple(fc.nat(NAMES.length - 1), size), { selector: ([name]) => name, maxLength: 10 })
    .map((found) =>
      found.map(([name, rest], i) => ({
        ...rest,
        name: NAMES[name] ?? '',
        id: region * 100 + ((i * 7) % 10),
        region,
        provider: providerOf(region),
      })),
    );

export const REGIONS = [1, 2, 3, 4, 5];
export const world: fc.Arbitrary<World> = fc
  .tuple(...REGIONS.map(machinesOf))
  .map((all) => new Map(all.map((machines, i) => [i + 1, machines])));

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 1 });
const gigabytes = maybe(
  fc
    .tuple(fc.integer({ min: 1, max: 4500 }), fc.constantFrom(1, ...Object.values(GIGABYTE)))
    .map(([thousandths, unit]) => thousandths * unit),
);

export const filters: fc.Arbitrary<Filters> = fc.record(
  {
    minCpu: maybe(fc.integer({ min: 1, max: 5 })),
    maxCpu: maybe(fc.integer({ min: 1, max: 5 })),
    isRamAsSold: maybe(fc.boolean()),
    minRam: gigabytes,
    maxRam: gigabytes,
    minRamPerCpu: gigabytes,
    maxRamPerCpu: gigabytes,
    maxPrice: maybe(fc.constantFrom(0.05, 0.1, 0.3, 0.4, 1)),
    minDisk: maybe(fc.constantFrom(0, 80, 100)),
    providers: maybe(fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 2 })),
    regions: maybe(fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 4 })),
    countries: maybe(fc.constantFrom(['DE'], ['US', 'FR'], ['ZZ'])),
    continents: maybe(fc.constantFrom<Continent[]>(['europe'], ['asia', 'north_america'])),
    name: maybe(fc.constantFrom('a', 'A', 'large', 'SS', 'ß', 'Ü', 'x', 'y', 'zz', '5.m')),
    architecture: maybe(fc.constantFrom('x86_64', 'arm64', 'riscv64')),
    cpuKind: maybe(fc.constantFrom('dedicated', 'shared')),
    withSoldOut: maybe(fc.constant(true as const)),
  },
  { requiredKeys: [] },
);

export const sort: fc.Arbitrary<Sort> = fc.record({
  by: fc.constantFrom('price', 'price_per_cpu', 'price_per_ram', 'cpu', 'ram'),
  descending: fc.boolean(),
});
