/** Builds the columns of a region. The same rows give the same bytes in the publisher and in the reader. */
import type { PublishedPlan } from '../../domain/database-plan.ts';
import type { MachineFacts } from '../../domain/machine-facts.ts';
import type { StoredRegionPrice } from '../../domain/prices/region-price.ts';
import type { StoredTerms } from '../../domain/prices/term.ts';
import type { MachineRow, RegionHead } from './build.ts';
import { type DatabasesPart, databasesPart } from './column-databases.ts';
import { type RegionPrice, TermsBuilder, type TermsPart } from './column-terms.ts';
import { BYTES_PER_ROW, HEADER_LENGTH, MAGIC, type Place, type SoldOutRow, tupleOf } from './columns.ts';
import type { Provenance } from './document.ts';
import type { DocumentContent } from './format.ts';

export interface MachineWithFacts extends MachineRow {
  readonly facts: MachineFacts;
  readonly soldOut?: boolean;
  readonly terms?: StoredTerms | null;
  /** Milliseconds since the epoch: when the terms last changed. */
  readonly termsSince?: number | null;
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
  readonly #regionPrices: readonly StoredRegionPrice[] | undefined;
  readonly #databases: DatabasesPart;

  constructor(
    region: RegionHead,
    regionPrices?: readonly StoredRegionPrice[] | null,
    databases?: readonly PublishedPlan[] | null,
  ) {
    this.#region = region;
    this.#regionPrices = regionPrices ?? undefined;
    this.#databases = databasesPart(databases);
  }

  add(machine: MachineWithFacts): void {
    const { id, name, cpu, ram, ramUnit, price, facts, soldOut, terms, termsSince } = machine;
    if (terms) this.#terms.add(id, terms, termsSince ?? undefined);
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
    const parts: TermsPart & DatabasesPart = { ...this.#terms.part(), prices, ...this.#databases };
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
