import { Unavailable } from '../../document/answer.ts';
import { type DocumentName, documentId } from '../../document/keys.ts';
import type { CacheCommands } from '../cache-commands.ts';
import type { DocumentsOptions } from '../documents-options.ts';
import { CacheTier } from './cache-tier.ts';
import type { DocumentMemory } from './memory.ts';
import { PostgresTier } from './postgres-tier.ts';
import type { DocumentListener, DocumentTier, DurableCopy, Served, TieredResult, Wanted } from './tier.ts';

/** The tiers below memory: cache, Postgres, and the disk copy, which answers last. */
export class Tiers {
  readonly #memory: DocumentMemory;
  readonly #commands: CacheCommands;
  readonly #cache: CacheTier;
  readonly #postgres: DocumentTier;
  readonly #copy: DurableCopy | undefined;
  readonly #listeners: readonly DocumentListener[];

  constructor(
    { subscription, postgres, copy, logger, onUnusable }: DocumentsOptions,
    memory: DocumentMemory,
  ) {
    this.#memory = memory;
    const onUnusableValue = (name: DocumentName) => {
      onUnusable?.(name.kind);
      logger.warn({ document: documentId(name) }, 'a value in the cache cannot be used; it is replaced');
    };
    const { commands } = subscription;
    this.#commands = commands;
    this.#cache = new CacheTier(subscription, onUnusableValue);
    const writeBack = commands.writeBack.bind(commands);
    this.#postgres = postgres.tier?.(writeBack) ?? new PostgresTier(postgres.reads, writeBack);
    this.#copy = copy;
    this.#listeners = [memory, ...(copy ? [copy] : []), this.#postgres];
  }

  /**
   * Reads the cache, and Postgres too once the cache is late. Without publishers only Postgres is current, and the cache answers
   * if Postgres does not.
   * @throws Unavailable
   */
  async read(wanted: Wanted): Promise<TieredResult> {
    const fromPostgres = () => this.#postgres.read(wanted);
    if (this.#cache.isCurrent) return this.#commands.hedge(this.#cache.read(wanted), fromPostgres);
    try {
      return await fromPostgres();
    } catch (error) {
      const found = error instanceof Unavailable ? await this.#cache.recall(wanted) : undefined;
      if (!found) throw error;
      return found;
    }
  }

  /** Returns a document that was served before, from memory or the disk copy, if it is young enough. */
  async recall(wanted: Wanted): Promise<TieredResult | undefined> {
    const own = this.#memory.recall(wanted);
    if (own) return own;
    const found = await this.#copy?.read(wanted.name);
    if (!found?.document || found.document.version < wanted.atLeast) return undefined;
    this.#memory.onRecalled(wanted, found);
    return found;
  }

  onPublished(id: string, version: number): void {
    for (const each of this.#listeners) each.onPublished?.(id, version);
  }

  onServed(wanted: Wanted, served: Served): void {
    for (const each of this.#listeners) each.onServed?.(wanted, served);
  }

  onLineage(lineage: string): void {
    for (const each of this.#listeners) each.onLineage?.(lineage);
  }
}
