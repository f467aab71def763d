/** What the clusters of an organization cost on demand, and which machine of the same region costs least. Pure. */
import type { ClusterDocument } from '../../domain/cluster.ts';
import type { MachineFacts } from '../../domain/machine-facts.ts';
import {
  type BookForTerm,
  bookForTerm,
  type PriceBookEntry,
  type SelectedMachine,
} from '../../domain/prices/price-book.ts';
import { type ClusterCost, clusterCost, machineAmount, type NodePrice, nodePriceBy } from './cost.ts';

export interface KnownMachine extends SelectedMachine, Pick<MachineFacts, 'architecture' | 'cpuKind'> {
  readonly cpu: number;
  /** Of memory. */
  readonly bytes: number;
  /** The list price; null if it is unknown. */
  readonly list: NodePrice | null;
  readonly isPublished: boolean;
}

export interface StoredCluster extends Pick<ClusterDocument, 'shards' | 'replicas' | 'disks'> {
  readonly machineId: number;
}

export interface CheaperMachine {
  readonly machine: KnownMachine;
  /** In a month, in units of 10^-8. */
  readonly saving: bigint;
}

export interface CostedCluster<Cluster extends StoredCluster> {
  readonly cluster: Cluster;
  readonly machine: KnownMachine | undefined;
  readonly cost: ClusterCost;
  readonly isOwn: boolean;
  readonly best: CheaperMachine | null;
}

/** @param machines the machines of the clusters, and the published machines of their regions @param at milliseconds since the epoch */
export function costClusters<Cluster extends StoredCluster>(
  clusters: readonly Cluster[],
  machines: readonly KnownMachine[],
  entries: readonly PriceBookEntry[],
  at: number,
): CostedCluster<Cluster>[] {
  const book = bookForTerm(entries, 'on_demand', at);
  const byId = new Map(machines.map((machine) => [machine.id, machine]));
  const ofRegion = pricedByRegion(machines, book);
  const known = new Map<number, PricedMachine | undefined>();
  const bestOf = (machine: KnownMachine) => {
    if (!known.has(machine.id))
      known.set(machine.id, cheapest(machine, ofRegion.get(machine.regionId) ?? []));
    return known.get(machine.id);
  };
  return clusters.map((cluster) => {
    const machine = byId.get(cluster.machineId);
    const entry = machine && book.entryOf(machine);
    const price = machine ? nodePriceBy(machine.list, entry) : null;
    const cost = clusterCost(cluster, price);
    const best = machine && cost.machine ? bestOf(machine) : undefined;
    const saving =
      best && cost.machine ? cost.machine.perMonth - machineAmount(best.price, cost.nodes).perMonth : 0n;
    return {
      cluster,
      machine,
      cost,
      isOwn: entry !== undefined && price !== null,
      best: best && saving > 0n ? { machine: best.machine, saving } : null,
    };
  });
}

interface PricedMachine {
  readonly machine: KnownMachine;
  readonly price: NodePrice;
  /** What one node costs in a month. */
  readonly perMonth: bigint;
}

/** Returns the published machines of each region with a price, the cheapest first. */
function pricedByRegion(machines: readonly KnownMachine[], book: BookForTerm): Map<number, PricedMachine[]> {
  const found = new Map<number, PricedMachine[]>();
  for (const machine of machines) {
    const price = machine.isPublished ? nodePriceBy(machine.list, book.entryOf(machine)) : null;
    if (!price) continue;
    const ofRegion = found.get(machine.regionId) ?? [];
    found.set(machine.regionId, ofRegion);
    ofRegion.push({ machine, price, perMonth: machineAmount(price, 1).perMonth });
  }
  for (const ofRegion of found.values())
    ofRegion.sort((a, b) =>
      a.perMonth === b.perMonth ? a.machine.id - b.machine.id : a.perMonth < b.perMonth ? -1 : 1,
    );
  return found;
}

/** Returns the first machine of at least the same size. A known architecture or kind of CPU must not differ. */
function cheapest(than: KnownMachine, priced: readonly PricedMachine[]): PricedMachine | undefined {
  const fits = (a: string | null, b: string | null) => a === null || b === null || a === b;
  return priced.find(
    ({ machine: { cpu, bytes, architecture, cpuKind } }) =>
      cpu >= than.cpu &&
      bytes >= than.bytes &&
      fits(architecture, than.architecture) &&
      fits(cpuKind, than.cpuKind),
  );
}
