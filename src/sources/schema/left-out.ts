import { meantMemory } from '../../domain/machine.ts';
import type { CatalogueItem, RejectedRow } from '../source.ts';
import { rejectedRow } from './items.ts';
import { rowOf } from './rows.ts';

/**
 * Counts prices that cannot be used, besides those of machines on demand. Machines and regions are offered without them. One
 * rejected row reports all prices of a kind, so that a change of the upstream's format never rejects a whole catalogue.
 */
export class LeftOut {
  readonly #kinds = new Map<string, { count: number; readonly first: string }>();

  /** @param kind for example `spot prices`; it may be no machine's name, because a rejected row excuses the machine that it names */
  add(kind: string, key: string, reason: string): void {
    const known = this.#kinds.get(kind);
    if (known === undefined) this.#kinds.set(kind, { count: 1, first: `${key}: ${reason}` });
    else known.count += 1;
  }

  has(kind: string): boolean {
    return this.#kinds.has(kind);
  }

  /** Returns the price that `read` returns. A price that cannot be used is left out. */
  read<T>(kind: string, key: string, read: () => T): T | undefined {
    const { value, reason } = rowOf(read);
    if (reason !== undefined) this.add(kind, key, reason);
    return value;
  }

  *rows(regionCode?: string): Generator<RejectedRow> {
    for (const [kind, { count, first }] of this.#kinds) {
      const key = regionCode === undefined ? kind : `${kind}@${regionCode}`;
      const prices = count === 1 ? 'one price is' : `${count} prices are`;
      yield rejectedRow(key, `${prices} left out; the first is ${first}`, { name: kind, regionCode });
    }
  }
}

/**
 * Reports, in one rejected row, the offers whose memory is probably counted in a wrong unit. They are no whole number of GB or GiB, so
 * they are stored and not published.
 */
export class WrongUnits {
  #count = 0;
  #first = '';

  note(item: CatalogueItem): void {
    if (item.kind !== 'offer' || item.offer.excluded !== undefined) return;
    const { name, regionCode, ram, ramUnit } = item.offer;
    const meant = meantMemory(item.offer);
    if (meant === undefined) return;
    this.#count += 1;
    if (this.#count === 1)
      this.#first = `${name}@${regionCode} with ${ram} ${ramUnit === 'Binary' ? 'GiB' : 'GB'}. Thousands may be counted as 1024s, or the reverse: is it ${meant}?`;
  }

  *rows(): Generator<RejectedRow> {
    if (this.#count === 0) return;
    const machines = this.#count === 1 ? 'one machine is' : `${this.#count} machines are`;
    const reason = `${machines} not published, since the memory is no whole number of GB or GiB; the first is ${this.#first}`;
    // No machine has this name.
    yield rejectedRow('units of memory', reason, { name: 'units of memory' });
  }
}
