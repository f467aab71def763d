/** What the console's routes answer: types alone, which the browser's code shares. Instants are RFC 3339, UTC. */

import type { BatchRecord, BatchTrail } from '../../../db/held-batches.ts';
import type { CataloguePlace, FoundMachines, MachineDetail, MachinePoints } from '../../../db/machines.ts';
import type { ExcludedMachines, QuarantinedRow } from '../../../db/quarantine.ts';
import type { RunNeighbours, RunRecord, StripRun } from '../../../db/runs/records.ts';
import type { RunDiff, TimelineEntry } from '../../../db/runs/timeline.ts';
import type { RegionStatus, SourceStatus } from '../../../db/sources.ts';
import type { CatalogueDiff, CataloguePreview, PreviewRow } from '../../../db/sync/catalogue/diff.ts';
import type { ClusterDiff } from '../../../db/sync/clusters/diff.ts';
import type { ClusterPreview, ClusterPreviewRow } from '../../../db/sync/clusters/preview.ts';
import type { Retirement } from '../../../db/sync/retire.ts';
import type { RunCounts } from '../../../db/sync/run.ts';
import type { Acknowledgement } from '../../../domain/alert.ts';
import type { Disabling } from '../../../domain/disabled-source.ts';
import type { ReasonGroup } from '../../../domain/rejected-rows.ts';
import type { RunRequests } from '../../../domain/run.ts';

export type { BatchRecord } from '../../../db/held-batches.ts';
export type { FoundMachine, MachinePoint, MachineSort } from '../../../db/machines.ts';
export type { QuarantinedRow } from '../../../db/quarantine.ts';
export type { ClusterChange } from '../../../db/runs/cluster-changes.ts';
export type { MachineChange, MachineState } from '../../../db/runs/machine-changes.ts';
export type { StripRun } from '../../../db/runs/records.ts';
export type * from './api-administration.ts';

/** The kinds of problems that need a person, the most urgent first. */
export const PROBLEMS = [
  'held',
  'failing',
  'never-read',
  'stale',
  'unread-regions',
  'empty',
  'not-configured',
] as const;
export type ProblemKind = (typeof PROBLEMS)[number];

export interface Problem {
  readonly kind: ProblemKind;
  readonly source: string;
  /** One sentence, without a full stop. */
  readonly text: string;
  /** Since when; null where that is not known. */
  readonly since: string | null;
  /** The batch that waits, of a problem `held`. */
  readonly batch?: number;
  /** Of the alert about the same; left out where no operator has acknowledged it. */
  readonly acknowledgement?: Acknowledgement;
}

/** Freshness of a source against its objective. */
export interface Freshness {
  /** Age of the data in seconds; null for a source that was never read well. */
  readonly ageSeconds: number | null;
  /** How old it may be, in seconds; null for a source that is not configured. */
  readonly objectiveSeconds: number | null;
}

export interface ShownSource extends Omit<SourceStatus, 'regions'>, Freshness {
  readonly configured: boolean;
  /** Five cron fields, UTC; null for a source that is not configured. */
  readonly schedule: string | null;
  readonly nextSlot: string | null;
  /** The most urgent problem, `running` for a first run under way, `retired`, `not-needed` for rates that no price needs, or `ok`. */
  readonly state: ProblemKind | 'running' | 'retired' | 'disabled' | 'not-needed' | 'ok';
  readonly regionCount: number;
  readonly unreadRegions: number;
  /** Oldest first. */
  readonly runs: readonly StripRun[];
  /** When the last run began that stored a change. */
  readonly changedAt: string | null;
}

export interface QueueDepth {
  readonly name: string;
  readonly waiting: number;
  readonly active: number;
  /** Waiting for a time: a slot's job that is tried again. */
  readonly delayed: number;
  readonly failed: number;
}

export interface Overview {
  readonly now: string;
  /** The most urgent first. */
  readonly problems: readonly Problem[];
  readonly sources: readonly ShownSource[];
  /** Null while the queues' Redis does not answer; empty where this process has no queue. */
  readonly queues: readonly QueueDepth[] | null;
}

export type { TimelineAction, TimelineEntry, TimelineRun } from '../../../db/runs/timeline.ts';

export interface ShownRegion extends RegionStatus, Freshness {}

export interface SourceAnswer {
  readonly source: ShownSource;
  readonly problems: readonly Problem[];
  /** Of a catalogue, by code. */
  readonly regions: readonly ShownRegion[];
  /** What its schedule means, e.g. `every hour at minute 17 UTC`; null for a source that is not configured. */
  readonly scheduleInWords: string | null;
  /** The next ones; none of a source that is not configured, or that is disabled. */
  readonly nextSlots: readonly string[];
  /** Whether it can be run from here. */
  readonly canRun: boolean;
}

/** One setting of a source: what it is, and whence. */
export type { SourceSetting as ShownSetting } from '../../../domain/source-setting.ts';

/** That a source was disabled, or enabled. */
export interface Switched {
  readonly source: string;
  readonly disabled: Disabling | null;
}

/** The run that was cancelled. */
export interface CancelledRun {
  readonly source: string;
  readonly run: number;
}

/** What would go out of publication with a source. */
export interface RetirementAnswer extends Retirement {
  /** False while it is configured. */
  readonly canRetire: boolean;
}

/** What went. */
export interface Retired extends Pick<Retirement, 'places' | 'rates'> {
  readonly source: string;
  /** False when the cache is away: it gets it later. */
  readonly published: boolean;
}

export interface TimelineAnswer {
  /** The newest first. */
  readonly entries: readonly TimelineEntry[];
  readonly hasOlder: boolean;
}

/** As `fleetbook rejected --json`, a page of it. */
export interface RejectedAnswer {
  readonly source: string;
  /** Rows that fit what is searched. */
  readonly total: number;
  /** Of all rows. */
  readonly reasons: readonly ReasonGroup[];
  readonly rows: readonly QuarantinedRow[];
}

/** As `fleetbook excluded --json`, a page of it. */
export interface ExcludedAnswer extends Pick<ExcludedMachines, 'total' | 'rows'> {
  readonly source: string;
  readonly reasons: readonly (ExcludedMachines['reasons'][number] & { readonly meaning: string })[];
}

/** What a held batch would change, as `hold show --json` has it. */
export type HeldPreview = {
  /** Rows that cannot be used. */
  readonly reasons: readonly ReasonGroup[];
} & (
  | ({
      readonly kind: 'catalogue';
      /** Of its prices. */
      readonly currency: string;
      readonly diff: CatalogueDiff;
      /** Names of regions by code, as the batch has them. */
      readonly regions: Readonly<Record<string, string>>;
    } & CataloguePreview)
  | ({ readonly kind: 'clusters'; readonly diff: ClusterDiff } & ClusterPreview)
);

/** A row of a batch: a machine, or a cluster with the fields that differ. */
export type HeldRow = PreviewRow | ClusterPreviewRow;

/** A batch with a page of what it would change; without `changes` when it does not wait (any more). */
export interface ShownBatch extends BatchRecord {
  readonly trail: BatchTrail;
  readonly changes: HeldChanges | null;
}

export interface HeldChanges {
  readonly kind: 'catalogue' | 'clusters';
  /** Of its prices; null for clusters. */
  readonly currency: string | null;
  readonly diff: CatalogueDiff | ClusterDiff;
  readonly reasons: readonly ReasonGroup[];
  /** Rows by kind of change, of the whole batch. */
  readonly totals: Readonly<Record<string, number>>;
  /** Machines that change and that readers do not see; 0 for clusters. */
  readonly unseen: number;
  /** Rows that fit what is searched; of these `rows` are one page, the worst first. */
  readonly total: number;
  readonly rows: readonly HeldRow[];
  /** Of some kind of change there are more rows than can be searched here: those that change least are left out. */
  readonly isCut: boolean;
}

/** What `/v1/machines/<id>` answers of a machine of a batch, as JSON; null where that is a 404. */
export interface ReadersAnswer {
  /** Null for a machine that gets its id when it is stored. */
  readonly id: number | null;
  readonly now: string | null;
  /** If the batch were approved; ids that are not given yet are null in it. */
  readonly after: string | null;
}

export interface MachinesAnswer extends FoundMachines {
  /** Of every price; null before the first run. */
  readonly currency: string | null;
}

export interface PointsAnswer extends MachinePoints {
  readonly currency: string | null;
}

export interface PlacesAnswer {
  readonly providers: readonly CataloguePlace[];
}

/** One machine with its prices and changes. */
export interface MachineAnswer extends MachineDetail {
  readonly currency: string | null;
}

/** One run with a page of what it has changed. */
export interface RunAnswer extends RunNeighbours {
  readonly run: RunRecord;
  /** Null for a run that made none, is under way, or is of an earlier release. */
  readonly requests: RunRequests | null;
  /** Whether it is known what it changed. */
  readonly isKept: boolean;
  /** How many it changed only in what another exchange rate makes of a price; 0 in a search. */
  readonly unshown: number;
  readonly diff: RunDiff;
}

/** A page of what has changed since a time. */
export interface ChangesAnswer {
  readonly since: string;
  /** Before this time changes are not kept, and what is shown is not all. */
  readonly keptSince: string;
  readonly isComplete: boolean;
  /** The provider's name; null for all of them. */
  readonly provider: string | null;
  readonly diff: Exclude<RunDiff, { of: 'rates' }>;
  /** Counts by kind of what `diff` is not of: clusters or machines. */
  readonly otherTotals: Readonly<Record<string, number>>;
}

/** What the charts show: a day in equal steps. Each line has one value for each step. */
export interface ChartsAnswer {
  /** Start of each step, seconds since 1970. */
  readonly times: readonly number[];
  /** Runs that ended, by outcome. `failed` includes runs whose process ended. */
  readonly runs: Readonly<Record<'changed' | 'unchanged' | 'held' | 'failed', readonly number[]>>;
  /** Seconds of the runs that read their source; null where none ended. */
  readonly seconds: Readonly<Record<'median' | 'longest', readonly (number | null)[]>>;
  /** Rows that runs stored. */
  readonly rows: Readonly<Record<'added' | 'changed' | 'retired', readonly number[]>>;
  /** Null when the queues' Redis does not answer. */
  readonly jobs: JobLines | null;
  readonly publication: {
    /** Documents that wait for publication. */
    readonly documents: number;
    /** When the alert `publication_behind` opened; null while it is not open. */
    readonly behindSince: string | null;
  };
  /** Batches that wait for a decision. */
  readonly held: { readonly batches: number; readonly oldest: string | null };
}

/** Queue → jobs that ended. */
export interface JobLines {
  readonly completed: Readonly<Record<string, readonly number[]>>;
  readonly failed: Readonly<Record<string, readonly number[]>>;
}

/** What came of a decision. */
export interface Decided {
  readonly batch: number;
  readonly decision: 'approved' | 'rejected' | 'undone';
  /** Of an approval, or of one that was taken back. */
  readonly counts: RunCounts | null;
  /** False when the cache is away: it gets it later. Null where nothing was to be published. */
  readonly published: boolean | null;
}

/** What a route answers that could not do what it was asked for. */
export interface Failure {
  /** What is wrong and what would do. */
  readonly error: string;
  /** The parameter or field that is wrong. */
  readonly field?: string;
}
