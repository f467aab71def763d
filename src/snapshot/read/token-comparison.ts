import { documentId } from '../document/keys.ts';
import { loadTokenVersions } from '../document/load.ts';
import type { PostgresReads } from './postgres/postgres-reads.ts';
import type { DocumentMemory } from './tiers/memory.ts';

const PREFIX = documentId({ kind: 'token', hash: '' });

export interface TokenComparisonOptions {
  /** Reads of the primary, if there is one. */
  readonly postgres: Pick<PostgresReads, 'look'>;
  readonly memory: Pick<DocumentMemory, 'takeUsedTokens' | 'confirm'>;
  readonly now: () => number;
  /** Postgres has a newer version of a token, e.g. its revocation. */
  readonly onNewer: (id: string, version: number) => void;
}

/**
 * Compares the tokens in use with PostgreSQL, whatever the cache holds. So a revoked token is refused after the pause between
 * two comparisons, also if no publisher reaches the cache. One statement reads all versions.
 */
export class TokenComparison {
  readonly #options: TokenComparisonOptions;

  constructor(options: TokenComparisonOptions) {
    this.#options = options;
  }

  /** @throws Unavailable if Postgres does not answer */
  async compare(): Promise<void> {
    const { postgres, memory, now, onNewer } = this.#options;
    const used = memory.takeUsedTokens();
    if (used.size === 0) return;
    const at = now();
    const hashes = [...used.keys()].map((id) => id.slice(PREFIX.length));
    const stored = await postgres.look((sql) => loadTokenVersions(sql, hashes));
    for (const [hash, version] of stored) {
      const id = PREFIX + hash;
      if (version > (used.get(id) ?? version)) onNewer(id, version);
      else memory.confirm(id, version, at);
    }
  }
}
