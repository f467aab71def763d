import type { Processor, Queue, Telemetry } from 'bullmq';
import type { Command } from 'commander';
import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { z } from 'zod';
import type { Finding } from '../cli/doctor/finding.ts';
import type { Config, Environment, WithSections } from '../config/config.ts';
import type { Configured, Setting } from '../config/settings.ts';
import type { Sql } from '../db/connection/client.ts';
import type { Database, Store } from '../db/connection/connect.ts';
import type { Condition, OpenAlert } from '../domain/alert.ts';
import type { Decider } from '../domain/operator.ts';
import type { ApiFeature } from '../http/app.ts';
import type { Searchable } from '../market/market.ts';
import type { OpsPart } from '../ops/part.ts';
import type { FollowerContext, PublicationFollower } from '../snapshot/publish/publisher.ts';
import type { MemoryBudget } from '../snapshot/read/budget.ts';
import type { CacheSubscription } from '../snapshot/read/cache-subscription.ts';
import type { Documents } from '../snapshot/read/documents.ts';
import type { PostgresSource } from '../snapshot/read/documents-options.ts';
import type { PostgresReads } from '../snapshot/read/postgres/postgres-reads.ts';
import type { DurableCopy } from '../snapshot/read/tiers/tier.ts';
import type { Writing } from './actions/publish.ts';
import type { Disposer } from './disposer.ts';

/**
 * A feature is one folder of `src/features`, and one line in `features.ts`. Every member is optional. Each command loads
 * every feature's index. So an index imports only settings and commands, and its members load all other code when they are
 * called.
 */
export interface Feature {
  readonly name: string;
  /** Environment variables of the feature. `settingsOf` reads them. */
  readonly settings?: Readonly<Record<string, Setting<unknown>>>;
  /** A section of the file that FLEETBOOK_CONFIG names. */
  readonly file?: FeatureSection;
  /** Returns what is wrong beyond single settings and the form of the section, a line each. */
  readonly problems?: (config: WithSections) => readonly string[];
  /** Loads the function that opens the feature's part of a reader. */
  readonly read?: () => Promise<(context: ReaderContext) => ReaderPart>;
  /** Loads the function that opens a copy of the reader's documents on disk. At most one feature has it. */
  readonly copy?: () => Promise<(context: CopyContext) => CopyPart | undefined>;
  /**
   * Loads the function that opens reads of a replica and its primary. Without the feature, readers treat both as one server.
   * At most one feature has it.
   */
  readonly replica?: () => Promise<(servers: ReplicaServers) => ReplicaPart>;
  readonly follow?: (context: FollowerContext) => PublicationFollower;
  readonly work?: (context: WorkerContext) => Promise<void>;
  /** Lets the person at this machine sign in to the operators' server. `up` prints the result after the address. */
  readonly up?: (context: UpContext) => Promise<string>;
  /** Starts tracing before anything else of a process. Undefined if the environment does not configure it. */
  readonly trace?: (env: Environment, program: TracedProgram) => Promise<Tracing | undefined>;
  readonly commands?: (program: Command, context: CommandContext) => void;
  /** Opens the feature's part of the operators' server, in a process with a database for operators: `work` and `up`. */
  readonly operations?: (context: OpsContext) => OpsPart | Promise<OpsPart>;
  /** Reads open alerts. At most one feature has it. */
  readonly openAlerts?: OpenAlerts;
  readonly queues?: readonly FeatureQueue[];
  /** Deletes the feature's old rows. Workers call it every minute. */
  readonly prune?: (db: Database, config: Config) => Promise<unknown>;
  readonly conditions?: FeatureConditions;
  /** Checks for `fleetbook doctor`. They report problems and do not throw. */
  readonly check?: (config: Configured) => Promise<readonly Finding[]>;
}

export type TracedProgram = 'serve' | 'work' | 'sync';

export interface Tracing extends AsyncDisposable {
  /** For the queue of syncs and its consumer. */
  readonly telemetry: Telemetry;
  /** Adds a span for each request that Fastify routes. Call it before the server listens. */
  traceRequests(app: FastifyInstance): void;
}

export interface FeatureSection {
  readonly name: string;
  /** Describes the section. A file may lack it. @param kinds of all conditions that features find */
  readonly shape: (kinds: readonly string[]) => z.ZodType;
}

export interface FeatureConditions {
  readonly kinds: Readonly<Record<string, string>>;
  readonly find: (sql: Sql, config: Configured) => Promise<readonly Condition[]>;
}

export interface OpenAlerts {
  /** Returns the open alerts, the newest first. */
  all(sql: Sql): Promise<readonly OpenAlert[]>;
  /** Returns when the open alert of a kind opened (RFC 3339); null if none is open. */
  openSince(sql: Sql, kind: string): Promise<string | null>;
  /** Returns a text that changes with every open alert and every message. */
  activity(sql: Sql): Promise<string>;
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

export interface ReplicaServers {
  readonly replica: ReplicaServer;
  readonly primary: ReplicaServer;
}

export interface ReplicaServer {
  readonly reads: PostgresReads;
  readonly setting: string;
}

export interface ReplicaPart {
  readonly replica: PostgresSource;
  /** Returns why the servers do not fit each other; undefined if they do. It rejects with `Unavailable`. */
  readonly misfit: () => Promise<string | undefined>;
  readonly addMetrics: (registry: Registry) => void;
}

export interface ReaderContext extends CopyContext {
  readonly documents: Documents;
  readonly subscription: CacheSubscription;
  readonly memory: MemoryBudget;
  /** The published machines of all regions. The first use reads them. */
  readonly catalogue: Searchable;
  /** Opens connections to the readers' database for the feature alone. @param connections how many at most */
  openReads(connections: number): PostgresReads;
}

export interface ReaderPart {
  readonly api?: ApiFeature;
  readonly addMetrics?: (registry: Registry) => void;
}

export interface WorkerContext {
  readonly config: Config;
  readonly logger: Logger;
  readonly closing: Disposer;
  readonly store: Store;
  /** Undefined in a worker without metrics. */
  readonly registry: Registry | undefined;
}

export interface CommandContext {
  /** Completed by the settings of the `up` that runs in the same home. */
  readonly env: () => Environment;
  /** Rejects with `BadSetting`, as `readConfig` throws it. */
  readonly config: () => Promise<Config>;
  /** Opens what a change is written and published with. @param options name the operator and the reason */
  openWriter(options: { readonly by?: string; readonly reason?: string }): Promise<CommandWriter>;
}

export interface CommandWriter extends AsyncDisposable {
  readonly store: Store;
  readonly by: Decider;
  /** Returns false if the cache cannot be reached. A worker publishes the change then. */
  publish(): Promise<boolean>;
}

export interface OpsContext {
  readonly config: Config;
  /** The environment that `config` was read from. */
  readonly env: Environment;
  readonly logger: Logger;
  readonly closing: Disposer;
  readonly kinds: FeatureConditions['kinds'];
  /** Undefined in a build without alerts. */
  readonly openAlerts: OpenAlerts | undefined;
  /** In the worker's role, which sees every organization. */
  readonly store: Store;
  readonly queues: readonly Queue[];
  /** Opens what changes are written and published with, at the first call. */
  openWriter(): Writing;
}

export interface UpContext {
  readonly db: Database;
  readonly by: Decider;
  /** The operator's token in the folder of `up`. */
  readonly storedToken: { read(): string | undefined; write(token: string): void };
}

/** A queue of jobs. It is part of the operators' pages and metrics by itself. */
export interface FeatureQueue {
  /** The queue's name in Redis, and the name of its schedule. */
  readonly name: string;
  /** Adds a job named `job` at each slot of `cron` (UTC). The job has one attempt, and no data. */
  readonly schedule?: { readonly cron: string; readonly job: string };
  /** Jobs that one worker runs at the same time; one unless given. */
  readonly concurrency?: (config: Config) => number;
  /** Opens the part of a worker that runs the jobs. */
  readonly open: (context: QueueContext) => Promise<Processor>;
}

export interface QueueContext extends Pick<WorkerContext, 'config' | 'logger' | 'store'> {
  readonly queue: Queue;
  readonly findConditions: (sql: Sql) => Promise<readonly Condition[]>;
}
