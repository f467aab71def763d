import { encoding } from '../../document/format.ts';
import { loadContent, loadVersion } from '../../document/load.ts';
import type { CacheSubscription } from '../cache-subscription.ts';
import { timeBy } from '../freshness.ts';
import type { Reads } from '../postgres/reads.ts';
import type { DocumentTier, TieredResult, Wanted } from './tier.ts';

export interface PostgresTierOptions {
  readonly postgres: Pick<Reads, 'run'>;
  /** Writes documents of Postgres to the cache. */
  readonly writeBack: CacheSubscription['writeBack'];
}

/** The documents of Postgres. It answers or throws. */
export class PostgresTier implements DocumentTier {
  readonly #postgres: PostgresTierOptions['postgres'];
  readonly #writeBack: PostgresTierOptions['writeBack'];

  constructor({ postgres, writeBack }: PostgresTierOptions) {
    this.#postgres = postgres;
    this.#writeBack = writeBack;
  }

  async read(wanted: Wanted): Promise<TieredResult> {
    return (await this.#confirm(wanted)) ?? (await this.load(wanted));
  }

  /** Returns the document of memory, if no newer version exists. */
  async #confirm({ name, id, cached, stamps }: Wanted): Promise<TieredResult | undefined> {
    if (!cached) return undefined;
    const version = await this.#postgres.run((sql) => loadVersion(sql, name));
    if (version !== cached.version) return undefined;
    const asOf = timeBy(stamps.postgres, id, cached.sources);
    return { document: cached, tier: 'memory', asOf, isOfPostgres: true };
  }

  async load({ keys, name, id, cached, lookUp, stamps }: Wanted): Promise<TieredResult> {
    const load = () =>
      this.#postgres.run(async (sql) => {
        const content = await loadContent(sql, name);
        return content && encoding(content);
      });
    const encoded = await (lookUp && !cached ? lookUp(load) : load());
    const document = encoded?.document;
    const asOf = timeBy(stamps.postgres, id, document?.sources ?? []);
    // The answer does not wait for the compressed codings of the cache's value.
    if (encoded) this.#writeBack(keys, name, encoded.document.version, () => encoded.value());
    return { document, tier: 'postgres', asOf, isOfPostgres: true };
  }
}
