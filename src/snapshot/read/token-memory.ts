import { LRUCache } from 'lru-cache';
import { lruOfEntries } from '../../domain/lru.ts';
import type { Document } from '../document/document.ts';
import { TokenDocument } from '../document/token-document.ts';
import { BYTES_PER_ENTRY, BYTES_PER_TOKEN } from './budget.ts';
import type { Consistency, Kind } from './consistency.ts';
import type { ReadAt } from './freshness.ts';
import { DocumentMemory, type DocumentMemoryOptions } from './memory.ts';
import type { Served, Wanted } from './tiers.ts';

/** Revocations at the same time that no worker could publish. */
const NEWER_TOKENS = 10_000;

export interface TokenMemoryOptions extends Omit<DocumentMemoryOptions, 'bytesPerEntry'> {
  /** Bytes for unknown tokens. With separate bytes, guesses evict no token. */
  readonly unknownTokensLimit: number;
}

/**
 * The tokens in memory, with separate bytes: a token takes a tenth of a list, and each request of its client needs it.
 * An accepted token is found by its text, which saves a SHA-256 at each request.
 */
export class TokenMemory extends DocumentMemory {
  readonly #rules: Consistency;
  readonly #byText = new Map<string, TokenDocument>();
  readonly #unknown: LRUCache<string, ReadAt>;
  /** Tokens of a former lineage that were not read since. */
  readonly #former = new Set<string>();
  /** Tokens that requests used since `takeUsed`, also those that memory has not stored, with the version that was served. */
  #used = new Map<string, number>();
  /** Newer versions of tokens than their entries of the stream named: the cache may lack them. Eviction of tokens does not forget a revocation. */
  readonly #newer = lruOfEntries<string, number>(NEWER_TOKENS);

  constructor(options: TokenMemoryOptions) {
    super({ ...options, bytesPerEntry: BYTES_PER_TOKEN });
    this.#rules = options.rules;
    this.#unknown = new LRUCache({
      maxSize: Math.max(16 * BYTES_PER_ENTRY, Math.floor(options.unknownTokensLimit)),
      sizeCalculation: () => BYTES_PER_ENTRY,
    });
  }

  /** Returns an accepted token if its entry is current. */
  find(text: string): TokenDocument | undefined {
    const known = this.#byText.get(text);
    return known && this.getFresh(known.id, 'token')?.document === known ? known : undefined;
  }

  /** `find` finds the token from now on, if memory has stored it. */
  accept(token: TokenDocument, text: string): void {
    if (this.getAny(token.id) !== token) return;
    token.text = text;
    this.#byText.set(text, token);
  }

  protected override onRemoved(document: Document): void {
    if (document instanceof TokenDocument && document.text !== undefined) this.#byText.delete(document.text);
  }

  override getFresh(id: string, kind: Kind): { readonly document: Document | undefined } | undefined {
    const found = super.getFresh(id, kind);
    if (found?.document) {
      this.#used.set(id, found.document.version);
      return found;
    }
    const unknown = this.#unknown.get(id);
    return unknown && this.#rules.isCurrent(unknown, kind, false) ? { document: undefined } : undefined;
  }

  override known(id: string): { readonly document: Document | undefined; readonly version: number } {
    const { document, version } = super.known(id);
    return { document, version: Math.max(version, this.#newer.get(id) ?? 0) };
  }

  /** Returns the tokens that were used since the last call, with the version that was served. */
  takeUsed(): ReadonlyMap<string, number> {
    const used = this.#used;
    this.#used = new Map();
    return used;
  }

  /** Notes that Postgres has a newer version of a token than the one that was served. */
  onNewer(id: string, version: number): void {
    this.#newer.set(id, Math.max(version, this.#newer.get(id) ?? 0));
  }

  /** Returns true for a token of a former lineage: its lookup is no guess. */
  wasKnown(id: string): boolean {
    return this.#former.has(id);
  }

  override onServed(wanted: Pick<Wanted, 'id' | 'name'>, served: Served): void {
    const { id } = wanted;
    const { document, epoch, at } = served;
    this.#former.delete(id);
    if (!document) {
      this.delete(id);
      this.#unknown.set(id, { epoch, at });
      return;
    }
    this.#unknown.delete(id);
    this.#used.set(id, document.version);
    super.onServed(wanted, served);
  }

  override onPublished(id: string, version: number): void {
    this.#unknown.delete(id);
    super.onPublished(id, version);
  }

  /** Forgets the tokens of a former lineage, but remembers their ids. */
  override onLineage(): void {
    for (const id of this.ids()) this.#former.add(id);
    super.onLineage();
    this.#unknown.clear();
    this.#newer.clear();
  }
}
