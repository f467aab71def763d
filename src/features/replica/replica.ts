import { Counter, Gauge, type Registry } from 'prom-client';
import { databaseOn, type Sql } from '../../db/connection/client.ts';
import { Unavailable } from '../../snapshot/document/answer.ts';
import type { Document } from '../../snapshot/document/document.ts';
import { encoding } from '../../snapshot/document/format.ts';
import { loadContent, loadFreshness, loadVersion } from '../../snapshot/document/load.ts';
import { NO_STAMPS, timeBy } from '../../snapshot/read/freshness.ts';
import { type PostgresReads, SemaphoreFull } from '../../snapshot/read/postgres-reads.ts';
import {
  type DocumentTier,
  type PostgresSource,
  PostgresTier,
  type Served,
  type TieredResult,
  type Wanted,
} from '../../snapshot/read/tiers.ts';
import { findProblem, readReplicaState } from './check.ts';
import { FENCED_BECAUSE, ReplicaReads } from './reads.ts';

interface ReplicaServers {
  readonly replica: ReplicaServer;
  readonly primary: ReplicaServer;
}

interface ReplicaServer {
  readonly reads: PostgresReads;
  readonly setting: string;
}

export interface Replica {
  readonly source: PostgresSource;
  /** Returns why the servers do not fit each other; undefined if they do. It rejects with `Unavailable`. */
  readonly problem: () => Promise<string | undefined>;
  readonly addMetrics: (registry: Registry) => void;
}

export function openReplica(servers: ReplicaServers): Replica {
  const reads = new ReplicaReads({ replica: servers.replica.reads, primary: servers.primary.reads });
  return {
    source: replicaOf(reads),
    async problem() {
      const states = [servers.replica, servers.primary].map(async ({ reads: server, setting }) => {
        return { state: await server.check((client) => readReplicaState(databaseOn(client))), setting };
      });
      return findProblem(...((await Promise.all(states)) as Parameters<typeof findProblem>));
    },
    addMetrics: (registry) => addSeries(registry, reads),
  };
}

function addSeries(registry: Registry, reads: ReplicaReads): void {
  const registers = [registry];
  new Gauge({
    name: 'fleetbook_replica_lag_seconds',
    help: 'Seconds from the last transaction of the replica to the read of it; NaN without a read in the last minute',
    registers,
    aggregator: 'max',
    collect() {
      this.set(reads.counts.lagSeconds ?? Number.NaN);
    },
  });
  new Counter({
    name: 'fleetbook_fenced_reads_total',
    help: 'Reads that the primary answered instead of the replica, by reason: older, unknown, behind, away',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      // An alert notices the first read only if the series exists before it.
      for (const reason of FENCED_BECAUSE) this.inc({ reason }, reads.counts.fenced.get(reason) ?? 0);
    },
  });
}

const REMEMBERED = 50_000;

/**
 * Reads documents from a replica by the versions of its primary. The primary names the newest version with one index lookup.
 * The replica gives the document if it has this version; otherwise the primary does.
 *
 * If the primary does not answer, the replica answers alone: nothing older than a version that this reader gave or received
 * in an entry of the stream, and as of the replica's last transaction.
 */
export class ReplicaTier implements DocumentTier {
  readonly #primary: PostgresTier;
  readonly #reads: ReplicaReads;
  readonly #newest = new Map<string, number>();
  #hasForgotten = false;

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
    return found ?? none(wanted);
  }

  onPublished(id: string, version: number): void {
    const known = this.#newest.get(id);
    if (known !== undefined && known >= version) return;
    if (known === undefined && this.#newest.size >= REMEMBERED) this.#hasForgotten = true;
    else this.#newest.set(id, version);
  }

  onServed({ id }: Wanted, { document }: Served): void {
    if (document) this.onPublished(id, document.version);
  }

  onLineage(lineage: string): void {
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
    if (version === undefined) return none(wanted);
    if (version === cached?.version) return current(wanted, cached);
    const found = await this.#reads.ofReplica((sql) => load(sql, wanted, version));
    if (found?.result) return current(wanted, found.result);
    if (found) this.#reads.fenced(found.result === null ? 'older' : 'unknown');
    return this.#primary.load(wanted);
  }

  async #readAlone(wanted: Wanted, error: Unavailable): Promise<TieredResult> {
    const { id, name, atLeast } = wanted;
    const known = this.#newest.get(id) ?? (this.#hasForgotten ? Number.POSITIVE_INFINITY : 0);
    const found = await this.#reads.ofReplica(async (sql) => {
      // Stamps first: the document has the changes of their runs. Stamps of other servers may be later.
      const stamps = name.kind === 'token' ? NO_STAMPS : await loadFreshness(sql);
      return { stamps, document: await load(sql, wanted, Math.max(atLeast, known)) };
    });
    const document = found?.result.document;
    if (!found || !document) throw error;
    const { state, result } = found;
    return {
      ...current({ ...wanted, stamps: { ...wanted.stamps, postgres: result.stamps } }, document),
      knownAt: state.isStandby ? (state.replayedTo ?? Number.NEGATIVE_INFINITY) : undefined,
    };
  }
}

export function replicaOf(reads: ReplicaReads): PostgresSource {
  return {
    reads,
    tier: (writeBack) => new ReplicaTier(new PostgresTier(reads.primary, writeBack), reads),
  };
}

/** Loads the document of this server; null if it is older than `atLeast`. */
async function load(
  sql: Sql,
  { name, cached }: Wanted,
  atLeast: number,
): Promise<Document | null | undefined> {
  const version = await loadVersion(sql, name);
  if (version === undefined) return undefined;
  if (version < atLeast) return null;
  if (version === cached?.version) return cached;
  const content = await loadContent(sql, name);
  return content && encoding(content).document;
}

function current({ id, cached, stamps }: Wanted, document: Document): TieredResult {
  const asOf = timeBy(stamps.postgres, id, document.sources);
  return { document, tier: document === cached ? 'memory' : 'postgres', asOf, isOfPostgres: true };
}

function none({ id, stamps }: Wanted): TieredResult {
  return { document: undefined, tier: 'postgres', asOf: timeBy(stamps.postgres, id, []), isOfPostgres: true };
}
