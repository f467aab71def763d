import type { Processor, Queue } from 'bullmq';
import type { Command } from 'commander';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Finding } from '../cli/doctor/finding.ts';
import type { Config, Environment } from '../config/config.ts';
import type { Configured, Setting } from '../config/settings.ts';
import type { ClientDatabase, Database, Store } from '../db/connection/connect.ts';
import type { Condition } from '../domain/alert.ts';
import type { ApiFeature } from '../http/app.ts';
import type { Market } from '../market/market.ts';
import type { OpsPart } from '../ops/feature-routes.ts';
import type { MemoryBudget } from '../snapshot/read/budget.ts';
import type { Documents } from '../snapshot/read/documents.ts';
import type { CacheLink } from '../snapshot/read/link.ts';
import type { PostgresReads } from '../snapshot/read/postgres-reads.ts';
import type { Writing } from './actions/publish.ts';
import type { Disposer } from './disposer.ts';

/**
 * A feature is one folder of `src/features`, and one entry in `features.ts`. It has the members that several features need. What
 * only one feature has is called by its name: tracing, the replica, the feed's appending, the exports' job.
 */
export interface Feature {
  readonly name: string;
  /** Environment variables of the feature. `settingsOf` reads them. */
  readonly settings?: Readonly<Record<string, Setting<unknown>>>;
  readonly commands?: readonly CommandFile[];
  /** Loads the function that opens the feature's part of a reader. */
  readonly read?: () => Promise<(context: ReaderContext) => ReaderPart>;
  /** Opens the feature's part of the operators' server, in a process with a database for operators: `work` and `up`. */
  readonly operations?: (context: OpsContext) => OpsPart | Promise<OpsPart>;
  readonly queues?: readonly FeatureQueue[];
  readonly conditions?: FeatureConditions;
  /** Deletes the feature's old rows. Workers call it every minute. */
  readonly prune?: (db: Database, config: Config) => Promise<unknown>;
  /** Checks for `fleetbook doctor`. They report problems and do not throw. */
  readonly check?: (config: Configured) => Promise<readonly Finding[]>;
}

/** A file of commands. It is loaded if the command line names one of them, and for `--help`. */
export interface CommandFile {
  readonly names: readonly string[];
  readonly load: () => Promise<{ define(program: Command, context: CommandContext): void }>;
}

export interface CommandContext {
  /** Completed by the settings of the `up` that runs in the same home. */
  readonly env: () => Environment;
  /** The environment of this process. */
  readonly given: Environment;
  /** Rejects with `BadSetting`, as `readConfig` throws it. */
  readonly config: () => Promise<Config>;
}

export interface FeatureConditions {
  readonly kinds: Readonly<Record<string, string>>;
  readonly find: (db: ClientDatabase, config: Configured) => Promise<readonly Condition[]>;
}

export interface ReaderContext {
  readonly config: Configured;
  readonly logger: Logger;
  readonly closing: Disposer;
  readonly documents: Documents;
  readonly link: CacheLink;
  readonly memory: MemoryBudget;
  readonly market: Market;
  /** Opens connections to the readers' database for the feature alone. @param connections how many at most */
  openReads(connections: number): PostgresReads;
}

export interface ReaderPart {
  readonly api?: ApiFeature;
  readonly addMetrics?: (registry: Registry) => void;
}

export interface OpsContext {
  readonly config: Config;
  /** The environment that `config` was read from. */
  readonly env: Environment;
  readonly logger: Logger;
  readonly closing: Disposer;
  readonly kinds: FeatureConditions['kinds'];
  /** In the worker's role, which sees every organization. */
  readonly store: Store;
  readonly queues: readonly Queue[];
  /** Opens what changes are written and published with, at the first call. */
  openWriter(): Writing;
}

/** A queue of jobs. It is part of the operators' pages and metrics by itself. */
export interface FeatureQueue {
  /** The queue's name in Redis, and the name of its schedule. */
  readonly name: string;
  /** Adds a job named `job` at each slot of `cron` (UTC). The job has one attempt, and no data. */
  readonly schedule?: { readonly cron: string; readonly job: string };
  /** Jobs that one worker runs at the same time; one unless given. */
  readonly concurrency?: (config: Config) => Promise<number>;
  /** Opens the part of a worker that runs the jobs. */
  readonly open: (context: QueueContext) => Promise<Processor>;
}

export interface QueueContext {
  readonly config: Config;
  readonly logger: Logger;
  readonly store: Store;
  readonly queue: Queue;
  readonly findConditions: (db: ClientDatabase) => Promise<readonly Condition[]>;
}
