import type { ReplicaReads } from '../../../features/replica/reads.ts';
import { encoding } from '../../document/format.ts';
import { loadContent, loadVersion } from '../../document/load.ts';
import type { CacheSubscription } from '../cache-subscription.ts';
import { timeBy } from '../freshness.ts';
import type { PostgresReads, Told } from '../postgres/postgres-reads.ts';
import type { DocumentTier, Given, TieredResult, Wanted } from './tier.ts';

export interface PostgresTierOptions {
  readonly postgres: PostgresReads | ReplicaReads;
  /** The same, if it is a replica. */
  readonly replica: ReplicaReads | undefined;
  /** Offers what Postgres has to the cache. */
  readonly writeBack: CacheSubscription['writeBack'];
}

/** The documents as Postgres has them, or a replica that has every version heard. It always answers, or throws. */
export class PostgresTier implements DocumentTier {
  readonly #postgres: PostgresReads | ReplicaReads;
  readonly #replica: ReplicaReads | undefined;
  readonly #writeBack: PostgresTierOptions['writeBack'];

  constructor({ postgres, replica, writeBack }: PostgresTierOptions) {
    this.#postgres = postgres;
    this.#replica = replica;
    this.#writeBack = writeBack;
  }

  async read(wanted: Wanted): Promise<TieredResult> {
    return (await this.#confirm(wanted)) ?? (await this.#load(wanted));
  }

  heard(id: string, version: number): void {
    this.#replica?.heard(id, version);
  }

  heardAll(): void {
    this.#replica?.heardAll();
  }

  given({ id }: Wanted, { document }: Given): void {
    if (document) this.#replica?.heard(id, document.version);
  }

  begin(lineage: string): void {
    this.#replica?.follow(lineage);
  }

  /** The document that memory has, if no newer version exists. */
  async #confirm({ name, id, cached, atLeast, stamps }: Wanted): Promise<TieredResult | undefined> {
    if (!cached) return undefined;
    const { result: version, ...by } = await this.#postgres.ask(
      (sql) => loadVersion(sql, name),
      (found, believes) =>
        (found ?? 0) >= atLeast && believes.version(id, found) && believes.stamps(cached.sources),
    );
    if (version !== cached.version) return undefined;
    const asOf = timeBy(stamps.postgres, id, cached.sources);
    return { document: cached, tier: 'memory', asOf, ...answered(by) };
  }

  async #load({ keys, name, id, cached, atLeast, lookUp, stamps }: Wanted): Promise<TieredResult> {
    let by: Omit<Told<unknown>, 'result'> = { isOfReplica: false };
    const load = async () => {
      const { result, ...told } = await this.#postgres.ask(
        async (sql) => {
          const content = await loadContent(sql, name);
          return content && encoding(content);
        },
        (found, believes) =>
          found !== undefined &&
          found.document.version >= atLeast &&
          believes.version(id, found.document.version) &&
          believes.stamps(found.document.sources),
      );
      by = told;
      return result;
    };
    const encoded = await (lookUp && !cached ? lookUp(load) : load());
    const document = encoded?.document;
    const asOf = timeBy(stamps.postgres, id, document?.sources ?? []);
    if (!encoded || !document) return { document: undefined, tier: 'postgres', asOf, ...answered(by) };
    // The answer does not wait for the codings that the cache gets. A replica may be behind what other readers gave.
    if (!by.isOfReplica) this.#writeBack(keys, name, document.version, () => encoded.value());
    return { document, tier: 'postgres', asOf, ...answered(by) };
  }
}

const answered = ({ isOfReplica, unsureSince }: Omit<Told<unknown>, 'result'>) => ({
  isOfPostgres: true,
  mayLack: isOfReplica,
  unsureSince,
});
