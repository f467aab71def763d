/** The interface by which a feature attaches to the core. */

import type { Telemetry } from 'bullmq';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Finding } from '../cli/doctor/finding.ts';
import type { Config, Environment } from '../config/config.ts';
import type { Configured, Setting } from '../config/settings.ts';
import type { Sql } from '../db/connection/client.ts';
import type { Store } from '../db/connection/connect.ts';
import type { Condition } from '../domain/condition.ts';
import type { ApiFeature } from '../http/feature.ts';
import type { FollowerContext, PublicationFollower } from '../snapshot/publish/follower.ts';
import type { MemoryBudget } from '../snapshot/read/budget.ts';
import type { CacheSubscription } from '../snapshot/read/cache-subscription.ts';
import type { Documents } from '../snapshot/read/documents.ts';
import type { DurableCopy } from '../snapshot/read/durable-copy.ts';
import type { PostgresReads } from '../snapshot/read/postgres/postgres-reads.ts';
import type { Disposer } from './disposer.ts';

/**
 * A feature is one folder of `src/features`, and one line in `features.ts`. Every member is optional: a feature gives those
 * that it needs. Resources go to `closing` where they are opened.
 */
export interface Feature {
  /** For people, e.g. as the name of a check. */
  readonly name: string;
  /** Environment variables of the feature. `settingsOf` reads them. */
  readonly settings?: Readonly<Record<string, Setting<unknown>>>;
  /** Opens the feature's part of a reader. */
  readonly read?: (context: ReaderContext) => ReaderPart;
  /** Opens a copy of what the reader serves that outlives its process. At most one feature has it. */
  readonly copy?: (context: CopyContext) => CopyPart | undefined;
  /** Follows the publisher. */
  readonly follow?: (context: FollowerContext) => PublicationFollower;
  /** Opens the feature's part of a worker. */
  readonly work?: (context: WorkerContext) => void;
  /** Finds what is wrong, for alerts. */
  readonly conditions?: (sql: Sql, config: Configured) => Promise<readonly Condition[]>;
  /** Starts tracing before anything else of a process. Undefined if the environment does not configure it. */
  readonly trace?: (env: Environment, program: TracedProgram) => Promise<Tracing | undefined>;
  /** Checks for `fleetbook doctor`. They report problems and do not throw. */
  readonly check?: (config: Configured) => Promise<readonly Finding[]>;
}

export type TracedProgram = 'serve' | 'work' | 'sync';

/** Sends traces. Disposing it sends the last ones. */
export interface Tracing extends AsyncDisposable {
  /** For the queue of syncs and its consumer. */
  readonly telemetry: Telemetry;
  /** Adds a span for each request that Fastify routes. Call it before the server listens. */
  traceRequests(app: FastifyInstance): void;
}

export interface CopyContext {
  readonly config: Configured;
  readonly logger: Logger;
  readonly closing: Disposer;
}

export interface CopyPart {
  readonly copy: DurableCopy;
  readonly addMetrics: (registry: Registry) => void;
}

/** What the feature's part of a reader may use. */
export interface ReaderContext extends CopyContext {
  readonly documents: Documents;
  readonly subscription: CacheSubscription;
  /** Bytes that each part of a reader may take. */
  readonly memory: MemoryBudget;
  /** Opens connections to the readers' database for the feature alone. @param connections how many at most */
  openReads(connections: number): PostgresReads;
}

export interface ReaderPart {
  /** Operations of the API. */
  readonly api?: ApiFeature;
  /** Adds the feature's series to the reader's metrics. */
  readonly addMetrics?: (registry: Registry) => void;
}

/** What the feature's part of a worker may use. */
export interface WorkerContext {
  readonly config: Config;
  readonly logger: Logger;
  readonly closing: Disposer;
  readonly store: Store;
  /** Undefined where nobody reads metrics. */
  readonly registry: Registry | undefined;
}
