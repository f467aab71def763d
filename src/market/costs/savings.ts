/** Where the rule for cheaper machines finds candidates: the machine's region in PostgreSQL, and all regions in the index. */
import type { Database } from '../../db/connection/connect.ts';
import { MINUTES_PER_MONTH } from '../../domain/prices/price.ts';
import type { BookForTerm } from '../../domain/prices/price-book.ts';
import type { PriceTerm } from '../../domain/prices/term.ts';
import type { CatalogueIndex } from '../catalogue-index.ts';
import { GIGABYTE } from '../dictionary.ts';
import { type FoundMachine, findMachine } from '../machines.ts';
import type { PricedIndex } from '../price-books.ts';
import { rowOf } from '../rows.ts';
import {
  BEST,
  type Cheaper,
  cheaperMachines,
  fits,
  type Match,
  type Ranked,
  rank,
  type WantedSaving,
} from './cheaper.ts';
import type { NodePrice } from './cost.ts';
import {
  type OneCluster,
  type PlacedMachine,
  type RegionMachine,
  readPlacedMachines,
  readRegionMachines,
} from './inputs.ts';
import {
  type CostOfCluster,
  type OrganizationCosts,
  type OrganizationInputs,
  organizationCosts,
  type PricedMachine,
  readOrganization,
} from './organization.ts';
import { bookFor, NOW, type Price, priceOf } from './prices.ts';

/** A published machine, and what a node of it costs the organization. */
export interface PricedCandidate extends PlacedMachine {
  readonly priced: Price;
  readonly node: NodePrice;
}

/** A machine of a cluster whose price is known, as machines are compared with it. */
export interface ComparedMachine extends Omit<PricedCandidate, 'region' | 'provider'> {}

/** Returns the machine for comparisons; undefined if its price is unknown. */
export function comparedMachine({ stored, ...priced }: PricedMachine): ComparedMachine | undefined {
  return priced.price ? { ...stored, priced, node: priced.price } : undefined;
}

function pricedCandidate(machine: PlacedMachine, term: PriceTerm, book: BookForTerm): PricedCandidate[] {
  const priced = priceOf(machine, term, book);
  return priced.price ? [{ ...machine, priced, node: priced.price }] : [];
}

/** A published machine of one region, at the price of a question. */
export interface RegionCandidate extends RegionMachine {
  readonly node: NodePrice;
}

interface PricedBy {
  readonly term: PriceTerm;
  readonly book: BookForTerm;
}

/** Returns the published machines of a region that have the term and at least this size, the cheapest first. */
async function candidatesOfRegion(
  db: Database,
  regionId: number,
  { term, book }: PricedBy,
  size: { readonly cpu: number; readonly bytes: number },
): Promise<Ranked<RegionCandidate>[]> {
  const machines = await readRegionMachines(db, regionId, term, size);
  return rank(
    machines.flatMap((machine) => {
      const { price } = priceOf(machine, term, book);
      return price ? [{ ...machine, node: price }] : [];
    }),
  );
}

/** Returns the cheaper machines of the same region, the cheapest first. */
export async function cheaperInRegion(
  db: Database,
  than: ComparedMachine,
  nodes: number,
  priced: PricedBy,
  wanted: WantedSaving,
): Promise<Ranked<PricedCandidate>[]> {
  const ranked = await candidatesOfRegion(db, than.regionId, priced, than);
  const ids = cheaperMachines(than, nodes, ranked, wanted).map(({ candidate }) => candidate.id);
  if (ids.length === 0) return [];
  const machines = await readPlacedMachines(db, ids, priced.term);
  return rank(machines.flatMap((machine) => pricedCandidate(machine, priced.term, priced.book)));
}

export type BestMachines = ReadonlyMap<CostOfCluster, Cheaper<RegionCandidate>>;

/** Returns the best machine of the same region for each cluster that has a cheaper one. It reads one region after the other. */
async function bestMachines(
  db: Database,
  costs: readonly CostOfCluster[],
  priced: PricedBy,
): Promise<BestMachines> {
  const found = new Map<CostOfCluster, Cheaper<RegionCandidate>>();
  const known = costs.flatMap((cost) => {
    const machine = comparedMachine(cost.machine);
    return machine ? [{ cost, machine }] : [];
  });
  for (const [regionId, inRegion] of Map.groupBy(known, ({ machine }) => machine.regionId)) {
    const smallest = inRegion.reduce(
      ({ cpu, bytes }, { machine }) => ({
        cpu: Math.min(cpu, machine.cpu),
        bytes: Math.min(bytes, machine.bytes),
      }),
      { cpu: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY },
    );
    const ranked = await candidatesOfRegion(db, regionId, priced, smallest);
    const bestOf = new Map<string, Cheaper<RegionCandidate> | undefined>();
    for (const { cost, machine } of inRegion) {
      const { nodes } = cost.cluster;
      // Clusters of one machine pay different prices if their provider left some at older ones.
      const key = `${machine.id} ${machine.node.price} ${machine.node.monthlyCap} ${nodes}`;
      if (!bestOf.has(key)) bestOf.set(key, cheaperMachines(machine, nodes, ranked, BEST)[0]);
      const best = bestOf.get(key);
      if (best) found.set(cost, best);
    }
  }
  return found;
}

/** The costs of an organization's clusters now, and the best machine for each. */
export interface CostsAndSavings {
  readonly inputs: OrganizationInputs;
  readonly costs: OrganizationCosts;
  readonly best: BestMachines;
}

/** @param now milliseconds since the epoch @param one only this cluster */
export async function readCostsAndSavings(
  db: Database,
  organizationId: number,
  now: number,
  one?: OneCluster,
): Promise<CostsAndSavings> {
  const inputs = await readOrganization(db, organizationId, NOW, now, one);
  const costs = await organizationCosts(inputs, NOW, now);
  const priced = { term: NOW.term, book: bookFor(inputs.entries, NOW, now) };
  return { inputs, costs, best: await bestMachines(db, costs.costs, priced) };
}

export interface WantedOfIndex extends PricedBy {
  readonly match: Match;
  /** The least number of candidates of each list, if the index has as many. */
  readonly most: number;
}

/**
 * Returns candidates of the index that fit: those of the machine's provider, and those of all providers, the cheapest first. The
 * cheaper ones are among them, up to `most` of each list.
 * @param view the machines with the term at the prices of the book
 */
export function candidatesOfIndex(
  { view, list }: Pick<PricedIndex, 'view' | 'list'>,
  than: ComparedMachine,
  { term, book, match, most }: WantedOfIndex,
): Readonly<Record<'sameProvider' | 'anywhere', Ranked<PricedCandidate>[]>> {
  const candidates = [...cheapestRows(view, than, match, most)].flatMap((row) => {
    const machine = findMachine(list, view.rows.ids[row] as number);
    return machine ? pricedCandidate(placedMachine(machine, term), term, book) : [];
  });
  const anywhere = rank(candidates);
  return {
    sameProvider: anywhere.filter(({ candidate }) => candidate.providerId === than.providerId),
    anywhere,
  };
}

/** A cost in doubles is nearer than this to the exact one. */
const RELATIVE_ERROR = 1e-9;

/** Returns the first rows of each list in the order of prices, and all rows that a monthly cap makes cheaper than the machine. */
function cheapestRows(view: CatalogueIndex, than: ComparedMachine, match: Match, most: number): Set<number> {
  const { rows, kindOf, dictionary, regions, caps } = view;
  const isFit = Uint8Array.from(dictionary.kinds, ({ facts, ramBytes }) =>
    !facts.isSoldOut && fits({ ...facts, bytes: ramBytes }, than, match) ? 1 : 0,
  );
  const isOfProvider = Uint8Array.from(regions, ({ provider }) => (provider.id === than.providerId ? 1 : 0));
  const fitsAt = (row: number) => isFit[kindOf[rows.types[row] as number] as number] === 1;
  const { price, monthlyCap } = than.node;
  const month = Math.min(Number(price) * MINUTES_PER_MONTH, Number(monthlyCap ?? Number.POSITIVE_INFINITY));
  const bound = month * (1 + RELATIVE_ERROR);
  const found = new Set<number>();
  /** Of the provider's rows, and of all others. */
  const missing: [number, number] = [most, most];
  for (let row = 0; row < rows.count && missing[0] + missing[1] > 0; row++) {
    // All later ones cost more, unless they have a cap.
    if ((rows.prices[row] as number) * MINUTES_PER_MONTH > bound) break;
    if (!fitsAt(row)) continue;
    const group = isOfProvider[rows.regions[row] as number] === 1 ? 0 : 1;
    if (missing[group] === 0) continue;
    missing[group] -= 1;
    found.add(row);
  }
  for (const ofRegion of caps) {
    for (const [i, id] of ofRegion?.ids.entries() ?? []) {
      if ((ofRegion?.values[i] as number) > bound) continue;
      const row = rowOf(rows, id);
      if (row !== undefined && fitsAt(row)) found.add(row);
    }
  }
  return found;
}

function placedMachine({ id, name, kind, price, ...machine }: FoundMachine, term: PriceTerm): PlacedMachine {
  const { isSoldOut, ...sizeAndFacts } = kind;
  const { region, provider } = machine.region;
  const list =
    term === 'on_demand'
      ? { price, cap: machine.monthlyCap }
      : { price: machine.terms[term]?.price, cap: undefined };
  return {
    ...sizeAndFacts,
    id,
    name,
    regionId: region.id,
    providerId: provider.id,
    region,
    provider,
    bytes: kind.ram * GIGABYTE[kind.ramUnit],
    price: list.price === undefined ? null : String(list.price),
    monthlyCap: list.cap === undefined ? null : String(list.cap),
    isListed: true,
    isPublished: isSoldOut !== true,
  };
}
