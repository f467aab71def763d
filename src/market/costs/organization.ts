/** What all clusters of an organization cost: the one calculation behind the API, the console, previews and webhooks. */
import type { Database } from '../../db/connection/connect.ts';
import { Slice } from '../../domain/event-loop.ts';
import type { CreationPrice } from '../../domain/prices/creation-price.ts';
import { type BookForTerm, nextChange, type PriceBookEntry } from '../../domain/prices/price-book.ts';
import { type Amount, clusterCost, machineAmount, NOTHING, type NodePrice, sum } from './cost.ts';
import {
  type Marked,
  type Marks,
  type OneCluster,
  type PriceTime,
  readBook,
  readClusters,
  readMachines,
  readMarks,
  type StoredCluster,
  type StoredMachine,
} from './inputs.ts';
import { bookFor, keptPrice, type Price, type PriceQuestion, priceOf } from './prices.ts';

/** Clusters of one region share it. */
export type Where = Pick<StoredCluster, 'provider' | 'region'>;

/** What the sums need of a cluster. */
export interface SummedCluster {
  readonly id: number;
  readonly slug: string;
  readonly name: string;
  readonly where: Where;
  readonly machineId: number;
  readonly nodes: number;
  /** The sum of its disks with a known price. */
  readonly disks: Amount;
  readonly knowsDisks: boolean;
  /** Null unless its provider keeps the price of the creation. Equal ones share one object. */
  readonly creation: CreationPrice | null;
}

/** Everything that the costs of an organization's clusters depend on. */
export interface OrganizationInputs {
  /** By slug. */
  readonly clusters: readonly SummedCluster[];
  /** Those of the clusters, at the prices of `time`. */
  readonly machines: ReadonlyMap<number, StoredMachine>;
  /** True if all machines are. */
  readonly arePublished: boolean;
  readonly entries: readonly PriceBookEntry[];
  readonly time: PriceTime;
  readonly marked: Marked;
  /** Those of `marked` at the read. */
  readonly marks: Marks;
  /** By the clock of the caller (ms). */
  readonly readAt: number;
}

/** No version covers the stored price of a machine that is not published. It is read again after this time (ms). */
const UNPUBLISHED_MS = 5000;

/** Reads the inputs in one snapshot. @param one only this cluster */
export async function readOrganization(
  db: Database,
  organizationId: number,
  time: PriceTime,
  now: number,
  one?: OneCluster,
): Promise<OrganizationInputs> {
  const clusters: SummedCluster[] = [];
  const sources = new Set<string>();
  const summed = clusterSummer();
  for await (const rows of readClusters(db, organizationId, one))
    for (const row of rows) {
      sources.add(row.sourceId);
      clusters.push(summed(row));
    }
  // They are nearly sorted: PostgreSQL compares by the rules of its language.
  clusters.sort((a, b) => (a.slug < b.slug ? -1 : 1));
  const entries = await readBook(db, organizationId);
  return withMachines(db, organizationId, { clusters, entries, time, readAt: now }, [...sources]);
}

/**
 * Returns the same inputs if nothing of them has changed, with the marks of now. It reads only what has changed: the clusters and the
 * book, or the machines alone.
 */
export async function readAgain(
  db: Database,
  organizationId: number,
  before: OrganizationInputs,
  now: number,
): Promise<{ readonly inputs: OrganizationInputs; readonly marks: Marks }> {
  const marks = await readMarks(db, organizationId, before.marked);
  const { lineage, organization, regions, currency } = before.marks;
  if (marks.lineage !== lineage || marks.organization !== organization) {
    const inputs = await readOrganization(db, organizationId, before.time, now);
    return { inputs, marks: inputs.marks };
  }
  const isSame = marks.regions === regions && marks.currency === currency;
  // The clock may have gone back.
  const isRecent = Math.abs(now - before.readAt) < UNPUBLISHED_MS;
  if (isSame && (isRecent || before.arePublished)) return { inputs: before, marks };
  const { sources } = before.marked;
  const inputs = await withMachines(db, organizationId, { ...before, readAt: now }, sources);
  return { inputs, marks: inputs.marks };
}

/** A cluster, and the price of its machine. */
export interface OneClusterInputs extends Pick<OrganizationInputs, 'entries' | 'marks'> {
  readonly cluster: StoredCluster;
  readonly machine: PricedMachine;
}

/** Returns undefined for an unknown cluster. */
export async function readOneCluster(
  db: Database,
  organizationId: number,
  one: OneCluster,
  question: PriceQuestion,
  now: number,
): Promise<OneClusterInputs | undefined> {
  // PostgreSQL rejects such a text, and no slug has it.
  if ('slug' in one && one.slug.includes('\0')) return undefined;
  for await (const [cluster] of readClusters(db, organizationId, one)) {
    if (!cluster) continue;
    const given = { clusters: [clusterSummer()(cluster)], entries: await readBook(db, organizationId) };
    const inputs = await withMachines(db, organizationId, { ...given, time: question, readAt: now }, [
      cluster.sourceId,
    ]);
    const book = bookFor(inputs.entries, question, now);
    const kept = keptPrice(cluster.creation, question, now);
    return { cluster, machine: pricedMachine(cluster.machineId, inputs, book, kept), ...inputs };
  }
  return undefined;
}

async function withMachines(
  db: Database,
  organizationId: number,
  given: Pick<OrganizationInputs, 'clusters' | 'entries' | 'time' | 'readAt'>,
  sources: readonly string[],
): Promise<OrganizationInputs> {
  const { clusters, entries, time, readAt } = given;
  const ids = new Set(clusters.map(({ machineId }) => machineId));
  const machines = new Map<number, StoredMachine>();
  const regions = new Set<number>();
  let arePublished = true;
  for await (const rows of readMachines(db, [...ids], time))
    for (const machine of rows) {
      machines.set(machine.id, machine);
      if (machine.isListed) regions.add(machine.regionId);
      arePublished &&= machine.isPublished;
    }
  const marked = { sources, regions: [...regions] };
  const marks = await readMarks(db, organizationId, marked);
  return { clusters, machines, arePublished, entries, time, marked, marks, readAt };
}

/** Returns a function that keeps what the sums need of a cluster. Equal regions and equal disks share one object. */
export function clusterSummer(): (row: StoredCluster) => SummedCluster {
  const wheres = new Map<number, Where>();
  const ofDisks = new Map<string, Pick<SummedCluster, 'disks' | 'knowsDisks'>>();
  const creations = new Map<string, CreationPrice>();
  const kept = (creation: CreationPrice | null) => {
    if (creation === null || creation.keptSince === null || creation.price === null) return null;
    const key = `${creation.price} ${creation.monthlyCap} ${creation.asOf} ${creation.keptSince}`;
    const found = creations.get(key) ?? creation;
    creations.set(key, found);
    return found;
  };
  return ({ id, slug, name, provider, region, machineId, creation, ...size }) => {
    const where = wheres.get(region.id) ?? { provider, region };
    wheres.set(region.id, where);
    const key = JSON.stringify([size.shards, size.replicas, size.disks]);
    const disks = ofDisks.get(key) ?? disksOf(size);
    ofDisks.set(key, disks);
    const nodes = size.shards * size.replicas;
    return { id, slug, name, where, machineId, nodes, ...disks, creation: kept(creation) };
  };
}

function disksOf(size: Pick<StoredCluster, 'shards' | 'replicas' | 'disks'>) {
  const { known, disks } = clusterCost(size, null);
  return { disks: known, knowsDisks: disks.every((part) => part !== null) };
}

/** The machine of a cluster, and its price by one question. */
export interface PricedMachine extends Price {
  readonly stored: StoredMachine;
}

export function pricedMachine(
  id: number,
  { machines, time }: Pick<OrganizationInputs, 'machines' | 'time'>,
  book: BookForTerm,
  kept?: NodePrice,
): PricedMachine {
  const stored = machines.get(id);
  if (!stored) throw new Error('unreachable: an organization sees the machines of its clusters');
  return { stored, ...priceOf(stored, time.term, book, kept) };
}

export interface CostOfCluster {
  readonly cluster: SummedCluster;
  readonly machine: PricedMachine;
  /** What the machines of all nodes cost; null if the price is unknown. */
  readonly amount: Amount | null;
  /** The sum of the known parts. */
  readonly known: Amount;
  readonly isComplete: boolean;
}

export interface Total {
  readonly clusters: number;
  /** Clusters with a part whose price is unknown. */
  readonly incomplete: number;
  /** The sum of the known parts. */
  readonly known: Amount;
}

export interface OrganizationCosts {
  /** The most expensive first by the known parts, then by slug. */
  readonly costs: readonly CostOfCluster[];
  readonly total: Total;
  /** The most expensive first. */
  readonly providers: readonly (Total & Pick<Where, 'provider'>)[];
  readonly regions: readonly (Total & Where)[];
  /** Milliseconds since the epoch: an entry of the price book begins or ends then. */
  readonly until: number;
}

/** @param now milliseconds since the epoch */
export async function organizationCosts(
  inputs: OrganizationInputs,
  question: PriceQuestion,
  now: number,
): Promise<OrganizationCosts> {
  const book = bookFor(inputs.entries, question, now);
  const priced = new Map<string, PricedMachine>();
  const amounts = new Map<string, Amount | null>();
  // Clusters of one cost stay in the order of their slugs.
  const byCost = new Map<bigint, CostOfCluster[]>();
  const sums = new Map<Where, Sum>();
  const slice = new Slice();
  for (const cluster of inputs.clusters) {
    if (slice.isOver) await slice.next();
    const { machineId, nodes, where, creation } = cluster;
    const kept = keptPrice(creation, question, now);
    const priceKey = kept ? `${machineId} ${kept.price} ${kept.monthlyCap}` : `${machineId}`;
    const machine = priced.get(priceKey) ?? pricedMachine(machineId, inputs, book, kept);
    priced.set(priceKey, machine);
    const key = `${priceKey} ${nodes}`;
    const amount = amounts.get(key) ?? (machine.price && machineAmount(machine.price, nodes));
    amounts.set(key, amount);
    const known = sum([amount ?? NOTHING, cluster.disks]);
    const cost = { cluster, machine, amount, known, isComplete: amount !== null && cluster.knowsDisks };
    const alike = byCost.get(known.perMonth);
    if (alike) alike.push(cost);
    else byCost.set(known.perMonth, [cost]);
    const ofRegion = sums.get(where) ?? emptySum();
    sums.set(where, ofRegion);
    add(ofRegion, { clusters: 1, incomplete: cost.isComplete ? 0 : 1, ...known });
  }
  const costs = [...byCost].sort(([a], [b]) => (a > b ? -1 : 1)).flatMap(([, alike]) => alike);
  // A provider that begins to keep prices changes nothing until a run stores them, with a new version.
  const until = question.at === undefined ? nextChange(inputs.entries, now) : undefined;
  return { costs, ...totalsOf(sums), until: until ?? Number.POSITIVE_INFINITY };
}

interface Sum {
  clusters: number;
  incomplete: number;
  perMinute: bigint;
  perMonth: bigint;
}

const emptySum = (): Sum => ({ clusters: 0, incomplete: 0, perMinute: 0n, perMonth: 0n });

function add(to: Sum, { clusters, incomplete, perMinute, perMonth }: Sum): void {
  to.clusters += clusters;
  to.incomplete += incomplete;
  to.perMinute += perMinute;
  to.perMonth += perMonth;
}

const totalOf = ({ clusters, incomplete, perMinute, perMonth }: Sum): Total => ({
  clusters,
  incomplete,
  known: { perMinute, perMonth },
});

function totalsOf(sums: ReadonlyMap<Where, Sum>): Pick<OrganizationCosts, 'total' | 'providers' | 'regions'> {
  const all = emptySum();
  const ofProvider = new Map<number, { readonly provider: Where['provider']; readonly sum: Sum }>();
  for (const [{ provider }, sum] of sums) {
    add(all, sum);
    const found = ofProvider.get(provider.id) ?? { provider, sum: emptySum() };
    ofProvider.set(provider.id, found);
    add(found.sum, sum);
  }
  const dearest = (a: Total, b: Total) =>
    a.known.perMonth === b.known.perMonth ? 0 : a.known.perMonth > b.known.perMonth ? -1 : 1;
  const compareText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
  return {
    total: totalOf(all),
    providers: [...ofProvider.values()]
      .map(({ provider, sum }) => ({ provider, ...totalOf(sum) }))
      .sort((a, b) => dearest(a, b) || a.provider.id - b.provider.id),
    regions: [...sums]
      .map(([where, sum]) => ({ ...where, ...totalOf(sum) }))
      .sort(
        (a, b) => dearest(a, b) || a.provider.id - b.provider.id || compareText(a.region.code, b.region.code),
      ),
  };
}
