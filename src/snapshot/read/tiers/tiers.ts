import { Unavailable } from '../../document/answer.ts';
import { fromEither } from './either.ts';
import type { DocumentTier, Given, TieredResult, Wanted } from './tier.ts';

/** The tiers as one, the nearest first. */
export class Tiers {
  readonly #tiers: readonly DocumentTier[];

  constructor(tiers: readonly DocumentTier[]) {
    this.#tiers = tiers;
  }

  /** The current document. @throws Unavailable */
  async read(wanted: Wanted): Promise<TieredResult> {
    try {
      return await this.#readFrom(0, wanted);
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      for (const tier of this.#tiers) {
        const found = await tier.readUnsure?.(wanted);
        if (found) return found;
      }
      throw error;
    }
  }

  /** Reads this tier, then those behind it. While they are read, a tier that does not answer is read again. */
  async #readFrom(index: number, wanted: Wanted): Promise<TieredResult> {
    const tier = this.#tiers[index];
    if (!tier) throw new Unavailable('no tier has the document');
    const next = () => this.#readFrom(index + 1, wanted);
    if (!tier.read) return next();
    const found = await tier.read(wanted);
    if (found) return found;
    return found === null ? next() : fromEither(tier, async () => tier.read?.(wanted), next);
  }

  /** The document of the nearest tier that has given it before. */
  async recall(wanted: Wanted): Promise<TieredResult | undefined> {
    for (const tier of this.#tiers) {
      const found = await tier.recall?.(wanted);
      if (!found) continue;
      for (const other of this.#tiers) if (other !== tier) other.recalled?.(wanted, found);
      return { ...found, isRecalled: true };
    }
    return undefined;
  }

  /** The newest version in any tier, if that may be newer than this one; else 0. */
  async newest(id: string, version: number): Promise<number> {
    const versions = await Promise.all(this.#tiers.map((tier) => tier.newest?.(id, version) ?? 0));
    return Math.max(...versions);
  }

  heard(id: string, version: number): void {
    for (const tier of this.#tiers) tier.heard?.(id, version);
  }

  given(wanted: Wanted, given: Given): void {
    for (const tier of this.#tiers) tier.given?.(wanted, given);
  }

  begin(lineage: string): void {
    for (const tier of this.#tiers) tier.begin?.(lineage);
  }
}
