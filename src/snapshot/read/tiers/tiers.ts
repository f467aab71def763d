import { Unavailable } from '../../document/answer.ts';
import { fromEither } from './either.ts';
import type { DocumentTier, Given, TieredResult, Wanted } from './tier.ts';

type CurrentTier = DocumentTier & Required<Pick<DocumentTier, 'read'>>;

/** The tiers as one, the nearest first. */
export class Tiers {
  readonly #tiers: readonly DocumentTier[];
  /** Tiers with current documents. */
  readonly #current: readonly CurrentTier[];
  /** Tiers that remember versions from before the last start. */
  readonly #lasting: readonly DocumentTier[];

  constructor(tiers: readonly DocumentTier[]) {
    this.#tiers = tiers;
    this.#current = tiers.filter((tier): tier is CurrentTier => tier.read !== undefined);
    this.#lasting = tiers.filter(({ newest }) => newest);
  }

  /**
   * Reads the current document from the nearest tier that knows it. While the next tiers are read, a tier that does not
   * answer is read again. If all fail, a tier that may be behind answers.
   * @throws Unavailable
   */
  async read(wanted: Wanted, index = 0): Promise<TieredResult> {
    const tier = this.#current[index];
    if (!tier) throw new Unavailable('no tier has the document');
    try {
      const found = await tier.read(wanted);
      if (found) return found;
      const next = () => this.read(wanted, index + 1);
      return await (found === null ? next() : fromEither(tier, async () => tier.read(wanted), next));
    } catch (error) {
      if (index > 0 || !(error instanceof Unavailable)) throw error;
      for (const behind of this.#tiers) {
        const unsure = await behind.readUnsure?.(wanted);
        if (unsure) return unsure;
      }
      throw error;
    }
  }

  /** Returns a document that was served before, from the nearest tier. */
  async recall(wanted: Wanted): Promise<TieredResult | undefined> {
    for (const tier of this.#tiers) {
      const found = await tier.recall?.(wanted);
      if (!found) continue;
      for (const other of this.#tiers) if (other !== tier) other.recalled?.(wanted, found);
      return { ...found, isRecalled: true };
    }
    return undefined;
  }

  /** True if a tier remembers versions from before the last start. */
  get isLasting(): boolean {
    return this.#lasting.length > 0;
  }

  /** Returns the newest version from before the last start, if it may be newer than `version`; else 0. */
  async newest(id: string, version: number): Promise<number> {
    const versions = await Promise.all(this.#lasting.map((tier) => tier.newest?.(id, version) ?? 0));
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
