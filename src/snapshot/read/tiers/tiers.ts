import { Unavailable } from '../../document/answer.ts';
import { type DocumentName, documentId } from '../../document/keys.ts';
import type { CacheCommands } from '../cache-commands.ts';
import type { DocumentsOptions } from '../documents-options.ts';
import { CacheTier } from './cache-tier.ts';
import type { DocumentMemory } from './memory.ts';
import { PostgresTier } from './postgres-tier.ts';
import type { DocumentListener, DocumentTier, Served, TieredResult, Wanted } from './tier.ts';

/** The tiers below memory: cache and Postgres. */
export class Tiers {
  readonly #commands: CacheCommands;
  readonly #cache: CacheTier;
  readonly #postgres: DocumentTier;
  readonly #listeners: readonly DocumentListener[];

  constructor({ subscription, postgres, logger, onUnusable }: DocumentsOptions, memory: DocumentMemory) {
    const onUnusableValue = (name: DocumentName) => {
      onUnusable?.(name.kind);
      logger.warn({ document: documentId(name) }, 'a value in the cache cannot be used; it is replaced');
    };
    const { commands } = subscription;
    this.#commands = commands;
    this.#cache = new CacheTier(subscription, onUnusableValue);
    const writeBack = commands.writeBack.bind(commands);
    this.#postgres = postgres.tier?.(writeBack) ?? new PostgresTier(postgres.reads, writeBack);
    this.#listeners = [memory, this.#postgres];
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
