/** What the offer file of a region states about EC2: machines with their prices and terms, and volumes. */
import type { OfferedTerm } from '../../../domain/prices/term.ts';
import { LeftOut } from '../../schema/left-out.ts';
import { type FoundPrice, KINDS, tiersOf } from '../../schema/region-prices.ts';
import { type Row, rowOf, valueIn } from '../../schema/rows.ts';
import { badAnswer, type RejectedRow } from '../../source.ts';
import { MOST_ROWS } from './offer-file.ts';
import { type Machine, machineOf, volumeOf } from './products.ts';
import { beginsLater, hourlyPrice, type ReservedTerm, reservedTerms, stepsOf, termsOf } from './terms.ts';

export const MAPS = ['products', 'terms.OnDemand', 'terms.Reserved'];

/** AWS names the unit in two ways. */
const STORED = ['GB-Mo', 'GB-month'];

export class RegionFile {
  readonly #regionCode: string;
  readonly #where: string;
  readonly #now: Date;
  #begun = false;
  readonly machines = new Map<string, Machine>();
  readonly rejected: RejectedRow[] = [];
  readonly prices = new Map<string, Row<string>>();
  readonly reserved = new Map<string, { [T in ReservedTerm]?: OfferedTerm }>();
  /** Names of volumes by SKU. */
  readonly #volumes = new Map<string, string>();
  readonly #storage: FoundPrice[] = [];
  readonly leftOut = new LeftOut();
  /** A term begins in the future. */
  changesLater = false;

  constructor(regionCode: string, where: string, now: Date) {
    [this.#regionCode, this.#where, this.#now] = [regionCode, where, now];
  }

  readonly isWanted = (map: string, sku: string): boolean => {
    this.#begun ||= map === 'products';
    // Otherwise every price would stay in memory until its product is known.
    if (!this.#begun) throw badAnswer(`${this.#where} has terms before products, or no products`);
    if (map === 'products' || this.machines.has(sku)) return true;
    return map === 'terms.OnDemand' && this.#volumes.has(sku);
  };

  add(map: string, sku: string, value: unknown): void {
    if (map === 'products') this.#addProduct(sku, value);
    else if (map === 'terms.Reserved') this.#addReserved(sku, value);
    else this.#addOnDemand(sku, value);
    const rows = this.machines.size + this.rejected.length + this.#volumes.size;
    if (rows > MOST_ROWS)
      throw badAnswer(`${this.#where} lists more than ${MOST_ROWS} machines; check the source's URL`);
  }

  /** A kind of volumes that is listed twice must have one price. */
  storage(): FoundPrice[] {
    const byName = Map.groupBy(this.#storage, ({ name }) => name);
    return [...byName].flatMap(([name, prices]) => {
      const tiers = new Set(prices.map((price) => JSON.stringify(price.tiers)));
      if (tiers.size === 1) return prices.slice(0, 1);
      this.leftOut.add(KINDS.block_storage, name, `has several prices: ${[...tiers].join(', ')}`);
      return [];
    });
  }

  #addProduct(sku: string, product: unknown): void {
    const machine = machineOf(sku, product, this.#regionCode);
    if (machine === undefined) {
      const volume = volumeOf(product, this.#regionCode);
      if (volume !== undefined) this.#volumes.set(sku, volume);
    } else if ('kind' in machine) this.rejected.push(machine);
    else this.machines.set(sku, machine);
  }

  #addOnDemand(sku: string, value: unknown): void {
    const terms = termsOf(value);
    this.changesLater ||= beginsLater(terms, this.#now);
    const volume = this.#volumes.get(sku);
    if (volume === undefined) {
      this.prices.set(
        sku,
        rowOf(() => hourlyPrice(terms, this.#now)),
      );
      return;
    }
    const tiers = this.leftOut.read(KINDS.block_storage, volume, () =>
      tiersOf(stepsOf(terms, this.#now, STORED)),
    );
    if (tiers === undefined) return;
    // Sizes of volumes are GiB, which the price list calls GB: https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html.
    const price = { item: 'block_storage', unit: 'GiB', per: 'month', currency: 'USD' } as const;
    this.#storage.push({ ...price, name: volume, tiers });
  }

  #addReserved(sku: string, value: unknown): void {
    const terms = termsOf(value);
    this.changesLater ||= beginsLater(terms, this.#now);
    const found: { [T in ReservedTerm]?: OfferedTerm } = {};
    for (const [term, row] of reservedTerms(terms, this.#now)) {
      const key = `${this.machines.get(sku)?.name} ${term}`;
      const price = this.leftOut.read('reserved prices', key, () => valueIn(row));
      if (price !== undefined) found[term] = price;
    }
    if (Object.keys(found).length > 0) this.reserved.set(sku, found);
  }
}
