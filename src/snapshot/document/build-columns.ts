/** Builds the columns of a region. The same rows give the same bytes in the publisher and in the reader. */
import type { MachineFacts } from '../../domain/machine-facts.ts';
import type { MachineRow, RegionHead } from './build.ts';
import { BYTES_PER_ROW, HEADER_LENGTH, MAGIC, type Place, type SoldOutRow, tupleOf } from './columns.ts';
import type { Provenance } from './document.ts';
import type { DocumentContent } from './format.ts';

export interface MachineWithFacts extends MachineRow {
  readonly facts: MachineFacts;
  readonly soldOut?: boolean;
}

export class ColumnsBuilder {
  readonly #region: RegionHead;
  readonly #prices: number[] = [];
  readonly #ids: number[] = [];
  readonly #kindOf: number[] = [];
  readonly #names: string[] = [];
  readonly #kinds = new Map<string, number>();
  readonly #soldOut: SoldOutRow[] = [];

  constructor(region: RegionHead) {
    this.#region = region;
  }

  add({ id, name, cpu, ram, ramUnit, price, facts, soldOut }: MachineWithFacts): void {
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
    const { id, name, code, provider, version } = this.#region;
    const place: Place = { region: { id, name, code }, provider: { id: provider.id, name: provider.name } };
    const soldOut = this.#soldOut.length > 0 ? `,"soldOut":${JSON.stringify(this.#soldOut)}` : '';
    const head = Buffer.from(
      `${JSON.stringify(place).slice(0, -1)},"kinds":[${[...this.#kinds.keys()].join(',')}],"names":${JSON.stringify(this.#names)}${soldOut}}`,
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
