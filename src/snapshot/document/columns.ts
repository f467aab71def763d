/**
 * The machines of a region as columns, for the search index. One file builds and reads them, so the same rows give the same bytes
 * in the publisher and in the reader.
 *
 *     "FBC1" <rows, u32> <bytes of the head, u32> <head: JSON> <price, f64>… <id, u32>… <kind, u32>…
 *
 * Numbers are little-endian. Rows are sorted by price, then id. The head has the region, the names, and each kind of machine
 * (size and facts) once. It also has the sold-out machines, terms, changes of stock, prices of the region, and plans of managed
 * databases. These parts are optional: a region without them has no bytes of them.
 */
import type { PublishedPlan } from '../../domain/database-plan.ts';
import type { MemoryUnit } from '../../domain/machine.ts';
import { FACT_FIELDS, type MachineFacts } from '../../domain/machine-facts.ts';
import type { StoredRegionPrice } from '../../domain/prices/region-price.ts';
import { type StoredTerms, TERMS, type Term } from '../../domain/prices/term.ts';
import type { MachineRow, RegionHead } from './build.ts';
import type { Provenance } from './document.ts';
import type { DocumentContent } from './format.ts';

/** The size and facts that machines with different names may share. */
export interface MachineKind extends MachineFacts {
  readonly cpu: number;
  /** Count of `ramUnit` units. */
  readonly ram: number;
  readonly ramUnit: MemoryUnit;
  readonly isSoldOut?: true;
}

export interface Place {
  readonly region: { readonly id: number; readonly name: string; readonly code: string };
  readonly provider: { readonly id: number; readonly name: string };
  /** ISO 3166-1 alpha-2; undefined if it is unknown. */
  readonly country?: string | undefined;
}

/** A price of a region as readers see it. Amounts are plain decimals, see `StoredRegionPrice`. */
export type RegionPrice = Omit<StoredRegionPrice, 'source'> & Pick<StoredRegionPrice['source'], 'per'>;

/** A value of some machines, ascending by id. */
export interface ById {
  readonly ids: Uint32Array;
  readonly values: Float64Array;
}

/** Prices are per minute. Everything else that a term states is unknown for a machine that a list lacks. */
export interface RegionTerms {
  readonly prices: ReadonlyMap<Term, ById>;
  /** Totals of payments upfront. */
  readonly upfronts: ReadonlyMap<Term, ById>;
  readonly caps: ById;
  /** Milliseconds since the epoch: when the terms or the cap of a machine last changed. */
  readonly since: ById;
}

/** The times of machines whose stock changed, see `availableShare`. Ascending by id; those of one end before `ends`. */
export interface RegionStock {
  readonly ids: Uint32Array;
  readonly ends: Uint32Array;
  readonly times: Uint32Array;
}

/** The machines of a region, then its sold-out ones. Row i has the i-th price, id, kind and name. */
export interface RegionColumns extends Place {
  /** Per minute, ascending in each of the two parts. */
  readonly prices: Float64Array;
  readonly ids: Uint32Array;
  readonly kindOf: Uint32Array;
  readonly kinds: readonly MachineKind[];
  readonly names: readonly string[];
  /** Undefined if no machine has any. */
  readonly terms: RegionTerms | undefined;
  /** Undefined if the stock of no machine changed. */
  readonly stock: RegionStock | undefined;
  /** Prices besides those of machines; undefined if they are unknown. */
  readonly regionPrices: readonly RegionPrice[] | undefined;
  /** Plans of managed databases, ascending by price; undefined if there is none. */
  readonly databases: readonly PublishedPlan[] | undefined;
}

const MAGIC = 'FBC1';
const HEADER_LENGTH = 12;
const BYTES_PER_ROW = 8 + 4 + 4;

type KindTuple = [
  cpu: number,
  ram: number,
  ramUnit: MemoryUnit,
  /** In the order of `FACT_FIELDS`. */
  ...facts: MachineFacts[keyof MachineFacts][],
];

type SoldOutRow = readonly [price: number, id: number, kind: number, name: string];

/** A plan as a list: a region may have hundreds. */
type PlanTuple = readonly [
  id: number,
  engine: string,
  name: string,
  nodes: PublishedPlan['nodes'],
  cpu: PublishedPlan['cpu'],
  ram: PublishedPlan['ram'],
  ramUnit: PublishedPlan['ramUnit'],
  storage: PublishedPlan['storage'],
  price: string,
];

type Pairs = readonly [ids: readonly number[], values: readonly number[]];

interface Head extends Place {
  readonly kinds: readonly KindTuple[];
  readonly names: readonly string[];
  readonly soldOut?: readonly SoldOutRow[];
  readonly terms?: Readonly<Record<string, Pairs>> | undefined;
  readonly upfronts?: Readonly<Record<string, Pairs>> | undefined;
  readonly caps?: Pairs | undefined;
  readonly termsSince?: Pairs | undefined;
  readonly stock?: readonly (readonly [id: number, times: readonly number[]])[] | undefined;
  readonly prices?: readonly RegionPrice[] | undefined;
  readonly databases?: readonly PlanTuple[] | undefined;
}

export interface MachineWithFacts extends MachineRow {
  readonly facts: MachineFacts;
  readonly soldOut?: boolean;
  readonly terms?: StoredTerms | null;
  /** Milliseconds since the epoch: when the terms last changed. */
  readonly termsSince?: number | null;
  /** See `availableShare`. */
  readonly stock?: readonly number[] | null;
}

export class ColumnsBuilder {
  readonly #region: RegionHead;
  readonly #prices: number[] = [];
  readonly #ids: number[] = [];
  readonly #kindOf: number[] = [];
  readonly #names: string[] = [];
  readonly #kinds = new Map<string, number>();
  readonly #soldOut: SoldOutRow[] = [];
  readonly #terms = new TermsBuilder();
  readonly #stock: [id: number, times: readonly number[]][] = [];
  readonly #regionPrices: readonly StoredRegionPrice[] | undefined;
  readonly #databases: Head['databases'];

  constructor(
    region: RegionHead,
    regionPrices?: readonly StoredRegionPrice[] | null,
    databases?: readonly PublishedPlan[] | null,
  ) {
    this.#region = region;
    this.#regionPrices = regionPrices ?? undefined;
    this.#databases = databases?.length ? databases.map(planTuple) : undefined;
  }

  add(machine: MachineWithFacts): void {
    const { id, name, cpu, ram, ramUnit, price, facts, soldOut, terms, termsSince, stock } = machine;
    if (terms) this.#terms.add(id, terms, termsSince ?? undefined);
    if (stock) this.#stock.push([id, stock]);
    const key = JSON.stringify(tupleOf({ cpu, ram, ramUnit }, facts));
    const kind = this.#kinds.get(key) ?? this.#kinds.size;
    if (kind === this.#kinds.size) this.#kinds.set(key, kind);
    if (soldOut) {
      this.#soldOut.push([price, id, kind, name]);
      return;
    }
    this.#prices.push(price);
    this.#ids.push(id);
    this.#kindOf.push(kind);
    this.#names.push(name);
  }

  content({ sources, currency }: Provenance): DocumentContent {
    const { id, name, code, country, provider, version } = this.#region;
    const place: Place = {
      region: { id, name, code },
      provider: { id: provider.id, name: provider.name },
      ...(country && { country }),
    };
    const soldOut = this.#soldOut.length > 0 ? `,"soldOut":${JSON.stringify(this.#soldOut)}` : '';
    const prices = this.#regionPrices?.map(shownPrice);
    const stock = this.#stock.length > 0 ? this.#stock.sort(([a], [b]) => a - b) : undefined;
    const parts = { ...this.#terms.part(), stock, prices, databases: this.#databases };
    const text = JSON.stringify(parts).slice(1, -1);
    const rest = text && `,${text}`;
    const head = Buffer.from(
      `${JSON.stringify(place).slice(0, -1)},"kinds":[${[...this.#kinds.keys()].join(',')}],"names":${JSON.stringify(this.#names)}${soldOut}${rest}}`,
    );
    const rows = this.#ids.length;
    const body = Buffer.alloc(HEADER_LENGTH + head.length + rows * BYTES_PER_ROW);
    body.write(MAGIC, 'latin1');
    body.writeUInt32LE(rows, 4);
    body.writeUInt32LE(head.length, 8);
    head.copy(body, HEADER_LENGTH);
    let at = HEADER_LENGTH + head.length;
    for (const each of this.#prices) at = body.writeDoubleLE(each, at);
    for (const column of [this.#ids, this.#kindOf])
      for (const each of column) at = body.writeUInt32LE(each, at);
    return {
      name: { kind: 'columns', regionId: id },
      version,
      body,
      index: new Map(),
      sources: [...sources].sort(),
      currency,
    };
  }
}

function shownPrice({ source, ...price }: StoredRegionPrice): RegionPrice {
  return { ...price, per: source.per };
}

function planTuple(plan: PublishedPlan): PlanTuple {
  const { id, engine, name, nodes, cpu, ram, ramUnit, storage, price } = plan;
  return [id, engine, name, nodes, cpu, ram, ramUnit, storage, price];
}

/** Collects the terms of the machines of a region. */
class TermsBuilder {
  readonly #lists = new Map<string, Map<number, number>>();

  add(id: number, { terms, monthly_cap: cap }: StoredTerms, since: number | undefined): void {
    for (const term of TERMS) {
      const stored = terms[term];
      if (!stored) continue;
      this.#set(`terms ${term}`, id, Number(stored.price));
      if (stored.upfront !== null) this.#set(`upfronts ${term}`, id, Number(stored.upfront));
    }
    if (cap) this.#set('caps', id, Number(cap.price));
    if (since !== undefined) this.#set('termsSince', id, since);
  }

  part(): Pick<Head, 'terms' | 'upfronts' | 'caps' | 'termsSince'> {
    const ofTerms = (kind: string) => {
      const found = TERMS.flatMap((term) => {
        const pairs = this.#pairs(`${kind} ${term}`);
        return pairs ? [[term, pairs] as const] : [];
      });
      return found.length === 0 ? undefined : Object.fromEntries(found);
    };
    const [caps, termsSince] = [this.#pairs('caps'), this.#pairs('termsSince')];
    return { terms: ofTerms('terms'), upfronts: ofTerms('upfronts'), caps, termsSince };
  }

  #set(list: string, id: number, value: number): void {
    const values = this.#lists.get(list) ?? new Map<number, number>();
    this.#lists.set(list, values.set(id, value));
  }

  #pairs(list: string): Pairs | undefined {
    const values = this.#lists.get(list);
    if (!values) return undefined;
    const ids = [...values.keys()].sort((a, b) => a - b);
    return [ids, ids.map((id) => values.get(id) as number)];
  }
}

function tupleOf(
  { cpu, ram, ramUnit }: Omit<MachineKind, keyof MachineFacts>,
  facts: MachineFacts,
): KindTuple {
  return [cpu, ram, ramUnit, ...FACT_FIELDS.map((field) => facts[field])];
}

/** Reads the columns of a body; undefined if it is in another format. A document's digest proves that its body is complete. */
export function readColumns(body: Buffer): RegionColumns | undefined {
  if (body.toString('latin1', 0, 4) !== MAGIC) return undefined;
  const rows = body.readUInt32LE(4);
  const start = HEADER_LENGTH + body.readUInt32LE(8);
  const head: Head = JSON.parse(body.toString('utf8', HEADER_LENGTH, start));
  const view = new DataView(body.buffer, body.byteOffset + start, rows * BYTES_PER_ROW);
  const { kinds, soldOut = [] } = head;
  const prices = new Float64Array(rows + soldOut.length);
  const ids = new Uint32Array(rows + soldOut.length);
  const kindOf = new Uint32Array(rows + soldOut.length);
  for (let i = 0; i < rows; i++) {
    prices[i] = view.getFloat64(i * 8, true);
    ids[i] = view.getUint32(rows * 8 + i * 4, true);
    kindOf[i] = view.getUint32(rows * 12 + i * 4, true);
  }
  for (const [i, [price, id, kind]] of soldOut.entries()) {
    prices[rows + i] = price;
    ids[rows + i] = id;
    kindOf[rows + i] = kinds.length + kind;
  }
  const { region, provider, country } = head;
  const all = kinds.map(kindOfTuple);
  const soldOutKinds = soldOut.length === 0 ? [] : all.map((kind) => ({ ...kind, isSoldOut: true as const }));
  const names = soldOut.length === 0 ? head.names : [...head.names, ...soldOut.map(([, , , name]) => name)];
  const rest = {
    terms: readTerms(head),
    stock: readStock(head),
    regionPrices: head.prices,
    databases: head.databases?.map(planOf),
  };
  return { region, provider, country, prices, ids, kindOf, names, kinds: [...all, ...soldOutKinds], ...rest };
}

function kindOfTuple([cpu, ram, ramUnit, ...values]: KindTuple): MachineKind {
  const facts = Object.fromEntries(FACT_FIELDS.map((field, i) => [field, values[i] ?? null]));
  return { cpu, ram, ramUnit, ...(facts as unknown as MachineFacts) };
}

function planOf([id, engine, name, nodes, cpu, ram, ramUnit, storage, price]: PlanTuple): PublishedPlan {
  return { id, engine, name, nodes, cpu, ram, ramUnit, storage, price };
}

/** Returns the terms of a region; undefined if it has none. */
function readTerms({ terms, upfronts, caps, termsSince }: Head): RegionTerms | undefined {
  if (!terms && !caps) return undefined;
  const ofTerms = (lists: Head['terms']) =>
    new Map(TERMS.flatMap((term) => (lists?.[term] ? [[term, byId(lists[term])] as const] : [])));
  return {
    prices: ofTerms(terms),
    upfronts: ofTerms(upfronts),
    caps: byId(caps),
    since: byId(termsSince),
  };
}

function readStock({ stock }: Head): RegionStock | undefined {
  if (!stock) return undefined;
  let end = 0;
  return {
    ids: Uint32Array.from(stock, ([id]) => id),
    ends: Uint32Array.from(stock, ([, times]) => {
      end += times.length;
      return end;
    }),
    times: Uint32Array.from(stock.flatMap(([, times]) => times)),
  };
}

const byId = ([ids, values]: Pairs = [[], []]): ById => ({
  ids: Uint32Array.from(ids),
  values: Float64Array.from(values),
});

/** Returns the value of a machine; undefined if the list lacks it. */
export function amountOf({ ids, values }: ById, id: number): number | undefined {
  return values[placeOf(ids, id)];
}

const NO_TIMES = new Uint32Array(0);

/** Returns the times of a machine; none if its stock never changed. */
export function timesOf({ ids, ends, times }: RegionStock, id: number): Uint32Array {
  const place = placeOf(ids, id);
  return place === -1 ? NO_TIMES : times.subarray(ends[place - 1] ?? 0, ends[place]);
}

/** Returns the place of an id in an ascending list; -1 if the list lacks it. */
function placeOf(ids: Uint32Array, id: number): number {
  let [low, high] = [0, ids.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ids[middle] as number) < id) low = middle + 1;
    else high = middle;
  }
  return ids[low] === id ? low : -1;
}
