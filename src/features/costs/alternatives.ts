/** Machines that cost less for a cluster. Pure. */
import type { LRUCache } from 'lru-cache';
import type { ClusterDocument } from '../../domain/cluster.ts';
import { lruOfEntries } from '../../domain/lru.ts';
import type { MachineFactsDocument } from '../../domain/machine.ts';
import type { MachineFacts } from '../../domain/machine-facts.ts';
import {
  type Amount,
  clusterCost,
  machineAmount,
  shownAmount,
  shownMonth,
} from '../../domain/prices/cost.ts';
import type { BookForTerm } from '../../domain/prices/price-book.ts';
import type { PriceTerm } from '../../domain/prices/term.ts';
import type { CatalogueIndex } from '../../snapshot/catalogue/catalogue-index.ts';
import { GIGABYTE } from '../../snapshot/catalogue/dictionary.ts';
import type { Filters } from '../../snapshot/catalogue/filters.ts';
import { type FoundMachine, findMachine, machineAt, ofTerm } from '../../snapshot/catalogue/find-machine.ts';
import { type OwnPrices, ownPrices } from '../../snapshot/catalogue/own-prices.ts';
import { searchOwn } from '../../snapshot/catalogue/own-search.ts';
import type { Rows } from '../../snapshot/catalogue/rows.ts';
import { search } from '../../snapshot/catalogue/search.ts';
import { machineOfRow } from '../../snapshot/catalogue/shown.ts';
import type { MachineKind } from '../../snapshot/document/columns.ts';
import type { AlternativeShown, AlternativesDocument } from './alternatives-schema.ts';
import type { Inputs } from './inputs.ts';
import { foundPrice, nearMonth, type Price, pricedMachine } from './prices.ts';
import { identityOf, machinePart, shownPrice } from './shown-costs.ts';

export interface WantedAlternatives {
  /** Of each list. */
  readonly limit: number;
  /** The least saving in a month, in units of an amount. */
  readonly minSaving: bigint;
}

/** A list is chosen from this many times as many machines, the cheapest per minute: monthly caps change their order. */
const CANDIDATES = 5;
/** Machines that are also compared exactly: numbers of equal prices may differ in the last digit. */
const NEAR_TIES = 10;

interface Alternative {
  readonly machine: FoundMachine;
  readonly price: Price;
  readonly amount: Amount;
  readonly saving: bigint;
}

export function alternativesDocument(
  cluster: ClusterDocument,
  inputs: Inputs,
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
      ? cheaper(cluster, inputs, where, cost.machine, wanted).map((each) =>
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
  where: Filters,
  current: Amount,
  { limit, minSaving }: WantedAlternatives,
): Alternative[] {
  const filters = { ...where, minCpu: machine.cpu, minRam: machine.ram * 1000, isRamAsSold: true };
  return cheapestPerMinute(inputs, filters, CANDIDATES * limit + 1)
    .filter((other) => other.machine.id !== machine.id)
    .sort((a, b) => a.month - b.month)
    .slice(0, limit + NEAR_TIES)
    .flatMap((other): Alternative[] => {
      const { price } = other;
      if (!price.price) return [];
      const amount = machineAmount(price.price, shards * replicas);
      const saving = current.perMonth - amount.perMonth;
      return saving > 0n && saving >= minSaving ? [{ machine: other.machine, price, amount, saving }] : [];
    })
    .sort(bySaving)
    .slice(0, limit);
}

const bySaving = (a: Alternative, b: Alternative): number =>
  a.saving === b.saving ? a.machine.id - b.machine.id : a.saving > b.saving ? -1 : 1;

const BY_PRICE = { by: 'price', descending: false } as const;

/** A machine with its price. The exact one is calculated at its first use. */
class Candidate {
  readonly machine: FoundMachine;
  /** A number near to the price of a month. */
  readonly month: number;
  readonly #term: PriceTerm;
  readonly #book: BookForTerm;
  #price: Price | undefined;

  constructor(machine: FoundMachine, term: PriceTerm, book: BookForTerm) {
    this.machine = machine;
    this.month = nearMonth(machine, term, book);
    this.#term = term;
    this.#book = book;
  }

  get price(): Price {
    this.#price ??= foundPrice(this.machine, this.#term, this.#book);
    return this.#price;
  }
}

/** Searches for one book. They are valid for the rows of one index. */
interface Searched {
  readonly rows: Rows;
  /** Undefined if no entry applies. */
  readonly own: OwnPrices | undefined;
  /** Rows of the index by question: clusters of one machine have the same ones. */
  readonly found: LRUCache<string, readonly number[]>;
  /** By row. */
  readonly candidates: LRUCache<number, Candidate>;
}

const SEARCHES_AT_MOST = 1000;
const CANDIDATES_AT_MOST = 10_000;
const searched = new WeakMap<BookForTerm, Searched>();

/** Returns the machines that cost least per minute. */
function cheapestPerMinute(inputs: Inputs, filters: Filters, most: number): Candidate[] {
  const { state, question, book } = inputs;
  const { term } = question;
  const { index } = state;
  const ofThis = term === 'on_demand' ? index : ofTerm(index, term);
  let known = searched.get(book);
  if (known?.rows !== index.rows) {
    const found = lruOfEntries<string, readonly number[]>(SEARCHES_AT_MOST);
    known = {
      rows: index.rows,
      own: ownPrices(ofThis, book),
      found,
      candidates: lruOfEntries(CANDIDATES_AT_MOST),
    };
    searched.set(book, known);
  }
  const { candidates } = known;
  const key = JSON.stringify([filters, most]);
  const rows = known.found.get(key) ?? searchRows(ofThis, known.own, filters, most).map(rowIn(index, ofThis));
  known.found.set(key, rows);
  return rows.map((row) => {
    const before = candidates.get(row);
    if (before) return before;
    const candidate = new Candidate(machineAt(index, row), term, book);
    candidates.set(row, candidate);
    return candidate;
  });
}

function searchRows(index: CatalogueIndex, own: OwnPrices | undefined, filters: Filters, most: number) {
  const { rows } = own
    ? searchOwn(index, own, filters, BY_PRICE, most)
    : search(index, filters, BY_PRICE, most);
  return rows;
}

/** Returns the row in the index of a row of a term. */
const rowIn = (index: CatalogueIndex, ofThis: CatalogueIndex) => (row: number) =>
  ofThis === index ? row : (findMachine(index, ofThis.rows.ids[row] as number)?.row ?? row);

function shownAlternative(
  { machine, price, amount, saving }: Alternative,
  cluster: ClusterDocument,
  facts: MachineFacts | undefined,
  index: CatalogueIndex,
): AlternativeShown {
  return {
    machine: machineOfRow(index, machine.row) as MachineFactsDocument,
    ...shownPrice(price),
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
    cpu_ratio: ratio(other.cpu, cpu),
    memory_ratio: ratio(other.ram * GIGABYTE[other.ramUnit], bytes),
    same_architecture: same(facts?.architecture, other.architecture),
    same_cpu_kind: same(facts?.cpuKind, other.cpuKind),
    local_disk_difference: disk === null || otherDisk === null ? null : otherDisk - disk,
  };
}

/** Returns three decimals. */
const ratio = (value: number, of: number): number => Math.round((value / of) * 1000) / 1000;
