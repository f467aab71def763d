/** Machines that cost less for a cluster. Pure. */
import type { LRUCache } from 'lru-cache';
import type { ClusterDocument } from '../../domain/cluster.ts';
import { lruOfEntries } from '../../domain/lru.ts';
import type { MachineFactsDocument } from '../../domain/machine.ts';
import type { MachineFacts } from '../../domain/machine-facts.ts';
import { difference, HOURS_PER_MONTH, ratio } from '../../domain/prices/price.ts';
import {
  type Amount,
  type CatalogueIndex,
  cheapestRows,
  clusterCost,
  type Filters,
  type FoundMachine,
  findMachine,
  GIGABYTE,
  machineAmount,
  machineOfRow,
  type NodePrice,
  type PricedIndex,
  type Rows,
  shownAmount,
  shownMonth,
} from '../../market/market.ts';
import type { MachineKind } from '../../snapshot/document/columns.ts';
import type { AlternativeShown, AlternativesDocument } from './alternatives-schema.ts';
import type { Inputs } from './inputs.ts';
import { foundPrice, type Price, pricedMachine } from './prices.ts';
import { identityOf, machinePart, shownPrice } from './shown-costs.ts';

export interface WantedAlternatives {
  /** Of each list. */
  readonly limit: number;
  /** The least saving in a month, in units of an amount. */
  readonly minSaving: bigint;
}

const RATIO_PLACES = 3;

interface Candidate {
  readonly machine: FoundMachine;
  readonly price: Price;
  readonly node: NodePrice;
}

interface Alternative extends Candidate {
  readonly amount: Amount;
  readonly saving: bigint;
}

export function alternativesDocument(
  cluster: ClusterDocument,
  inputs: Inputs,
  priced: PricedIndex,
  wanted: WantedAlternatives,
): AlternativesDocument {
  const { machines, stored, question, state } = inputs;
  const { id } = cluster.machine;
  const machine = pricedMachine(id, inputs);
  const cost = clusterCost({ ...cluster, disks: [] }, machine.price);
  const found = machines.get(id);
  const row = stored.get(id);
  const facts = found?.kind ?? row;
  const region = found?.region.region.id ?? row?.regionId;
  const provider = found?.region.provider.id ?? row?.providerId;
  const list = (where: Filters): AlternativeShown[] =>
    cost.machine
      ? cheaper(cluster, inputs, priced, where, cost.machine, wanted).map((each) =>
          shownAlternative(each, cluster, facts, state.index),
        )
      : [];
  return {
    cluster: identityOf(cluster),
    term: question.term,
    prices: question.prices,
    machine: machinePart(cluster, machine, cost),
    same_region: region === undefined ? [] : list({ regions: [region] }),
    same_provider: provider === undefined ? [] : list({ providers: [provider] }),
    anywhere: list({}),
  };
}

function cheaper(
  { machine, shards, replicas }: ClusterDocument,
  inputs: Inputs,
  priced: PricedIndex,
  where: Filters,
  current: Amount,
  { limit, minSaving }: WantedAlternatives,
): Alternative[] {
  const filters = { ...where, minCpu: machine.cpu, minRam: machine.ram * 1000, isRamAsSold: true };
  // One more than the list has: the machine of the cluster may be among them.
  return cheapestPerMonth(inputs, priced, filters, limit + 1)
    .filter((other) => other.machine.id !== machine.id)
    .map((other): Alternative => {
      const amount = machineAmount(other.node, shards * replicas);
      return { ...other, amount, saving: current.perMonth - amount.perMonth };
    })
    .filter(({ saving }) => saving > 0n && saving >= minSaving)
    .sort(bySaving)
    .slice(0, limit);
}

const bySaving = (a: Alternative, b: Alternative): number =>
  a.saving === b.saving ? a.machine.id - b.machine.id : a.saving > b.saving ? -1 : 1;

const SEARCHES_AT_MOST = 1000;

/** Searches of one index by question: clusters of one machine have the same ones. */
const searched = new WeakMap<Rows, LRUCache<string, readonly Candidate[]>>();

/** Returns the machines that cost least in a month. Some more may be among them. */
function cheapestPerMonth(
  { state: { index }, question: { term }, book }: Inputs,
  { view }: PricedIndex,
  filters: Filters,
  most: number,
): readonly Candidate[] {
  const found = searched.get(view.rows) ?? lruOfEntries<string, readonly Candidate[]>(SEARCHES_AT_MOST);
  searched.set(view.rows, found);
  const key = JSON.stringify([filters, most]);
  const known = found.get(key);
  if (known !== undefined) return known;
  const grouping = { count: 1, groupOf: () => 0, most };
  const rows = cheapestRows(view, filters, HOURS_PER_MONTH, grouping);
  const candidates = rows.flatMap((row): Candidate[] => {
    const machine = findMachine(index, view.rows.ids[row] as number);
    if (!machine) return [];
    const price = foundPrice(machine, term, book);
    return price.price ? [{ machine, price, node: price.price }] : [];
  });
  found.set(key, candidates);
  return candidates;
}

function shownAlternative(
  { machine, price, node, amount, saving }: Alternative,
  cluster: ClusterDocument,
  facts: MachineFacts | undefined,
  index: CatalogueIndex,
): AlternativeShown {
  return {
    machine: {
      ...(machineOfRow(index, machine.row) as MachineFactsDocument),
      ...shownPrice(price),
      price: Number(node.price),
      price_source: price.source ?? 'list',
    },
    ...shownAmount(amount),
    saving_per_month: shownMonth(saving),
    compared: compared(cluster.machine, facts, machine.kind),
  };
}

function compared(
  { cpu, ram, ram_unit }: ClusterDocument['machine'],
  facts: MachineFacts | undefined,
  other: MachineKind,
): AlternativeShown['compared'] {
  const bytes = ram * GIGABYTE[ram_unit];
  const same = (a: string | null | undefined, b: string | null) =>
    a === null || a === undefined || b === null ? null : a === b;
  const [disk, otherDisk] = [facts?.localDisk ?? null, other.localDisk];
  return {
    cpu_ratio: ratio(other.cpu, cpu, RATIO_PLACES),
    memory_ratio: ratio(other.ram * GIGABYTE[other.ramUnit], bytes, RATIO_PLACES),
    same_architecture: same(facts?.architecture, other.architecture),
    same_cpu_kind: same(facts?.cpuKind, other.cpuKind),
    local_disk_difference: disk === null || otherDisk === null ? null : difference(otherDisk, disk),
  };
}
