import { Unavailable } from '../../document/answer.ts';
import type { Document } from '../../document/document.ts';
import { encoding } from '../../document/format.ts';
import { loadContent, loadVersion } from '../../document/load.ts';
import type { OfReplica, ReplicaReads } from '../postgres/replica-reads.ts';
import { SemaphoreFull } from '../postgres/semaphore.ts';
import type { PostgresTier } from './postgres-tier.ts';
import type { DocumentTier, Given, TieredResult, Wanted } from './tier.ts';

/** Documents whose newest version is remembered. */
const REMEMBERED = 50_000;

/**
 * The documents of a replica, by the versions of its primary. The primary names the newest version, by one lookup in an
 * index. A replica that has this version gives the document; otherwise the primary does.
 *
 * If the primary does not answer, the replica answers alone: nothing older than what this reader gave or heard, and as of the
 * last transaction that it has.
 */
export class ReplicaTier implements DocumentTier {
  readonly #primary: PostgresTier;
  readonly #reads: ReplicaReads;
  /** Id → the newest version that was given or heard. */
  readonly #newest = new Map<string, number>();
  #hasForgotten = false;

  /** @param primary reads from the primary alone */
  constructor(primary: PostgresTier, reads: ReplicaReads) {
    this.#primary = primary;
    this.#reads = reads;
  }

  async read(wanted: Wanted): Promise<TieredResult> {
    const { cached, lookUp } = wanted;
    if (!lookUp || cached) return this.#read(wanted);
    const found = await lookUp(async () => {
      const result = await this.#read({ ...wanted, lookUp: undefined });
      return result.document && result;
    });
    return found ?? NONE;
  }

  heard(id: string, version: number): void {
    const known = this.#newest.get(id);
    if (known !== undefined && known >= version) return;
    if (known === undefined && this.#newest.size >= REMEMBERED) this.#hasForgotten = true;
    else this.#newest.set(id, version);
  }

  given({ id }: Wanted, { document }: Given): void {
    if (document) this.heard(id, document.version);
  }

  begin(lineage: string): void {
    this.#newest.clear();
    this.#hasForgotten = false;
    this.#reads.follow(lineage);
  }

  async #read(wanted: Wanted): Promise<TieredResult> {
    const { name, cached } = wanted;
    let version: number | undefined;
    try {
      version = await this.#reads.primary.run((sql) => loadVersion(sql, name));
    } catch (error) {
      if (!(error instanceof Unavailable) || error instanceof SemaphoreFull) throw error;
      return this.#readAlone(wanted, error);
    }
    if (version === undefined) return NONE;
    if (version === cached?.version) return { document: cached, tier: 'memory', isOfPostgres: true };
    const found = await this.#ofReplica(wanted, version);
    if (found?.result) return { document: found.result, tier: 'postgres', isOfPostgres: true };
    if (found) this.#reads.fenced(found.result === null ? 'older' : 'unknown');
    return this.#primary.load(wanted);
  }

  async #readAlone(wanted: Wanted, error: Unavailable): Promise<TieredResult> {
    const { id, cached, atLeast } = wanted;
    const known = this.#newest.get(id) ?? (this.#hasForgotten ? Number.POSITIVE_INFINITY : 0);
    const found = await this.#ofReplica(wanted, Math.max(atLeast, known));
    if (!found?.result) throw error;
    const { result: document, state } = found;
    const unsureSince = state.isStandby ? (state.replayedTo ?? Number.NEGATIVE_INFINITY) : undefined;
    return {
      document,
      tier: document === cached ? 'memory' : 'postgres',
      isOfPostgres: true,
      mayLack: true,
      ...(unsureSince !== undefined && { unsureSince, knownAt: unsureSince }),
    };
  }

  /** The replica's document; null if that is older than `atLeast`. */
  #ofReplica(
    { name, cached }: Wanted,
    atLeast: number,
  ): Promise<OfReplica<Document | null | undefined> | undefined> {
    return this.#reads.ofReplica(async (sql) => {
      const version = await loadVersion(sql, name);
      if (version === undefined) return undefined;
      if (version < atLeast) return null;
      if (version === cached?.version) return cached;
      const content = await loadContent(sql, name);
      return content && encoding(content).document;
    });
  }
}

const NONE: TieredResult = { document: undefined, tier: 'postgres', isOfPostgres: true };
