import { encoding } from '../../document/format.ts';
import { loadContent, loadVersion } from '../../document/load.ts';
import type { CacheCommands } from '../cache-commands.ts';
import { timeBy } from '../freshness.ts';
import type { Reads } from '../postgres/postgres-reads.ts';
import type { DocumentTier, TieredResult, Wanted } from './tier.ts';

/** The documents of one server of Postgres, which are current. */
export class PostgresTier implements DocumentTier {
  readonly #postgres: Pick<Reads, 'run'>;
  readonly #writeBack: CacheCommands['writeBack'];

  constructor(postgres: Pick<Reads, 'run'>, writeBack: CacheCommands['writeBack']) {
    this.#postgres = postgres;
    this.#writeBack = writeBack;
  }

  async read(wanted: Wanted): Promise<TieredResult> {
    const { name, id, cached, stamps } = wanted;
    if (!cached) return this.load(wanted);
    const version = await this.#postgres.run((sql) => loadVersion(sql, name));
    if (version !== cached.version) return this.load(wanted);
    const asOf = timeBy(stamps.postgres, id, cached.sources);
    return { document: cached, tier: 'memory', asOf, isOfPostgres: true };
  }

  /** Reads the document, whatever memory has. */
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
