/** The answers of the console's routes. The console in the browser shares these types. Instants are RFC 3339 in UTC. */

import type { BatchRecord } from '../../../db/held-batches.ts';
import type { RunningVersion } from '../../../db/lifecycles.ts';
import type { ProblemKind, Severity, SourceProblem } from '../../../db/problems.ts';
import type { QuarantinedRow } from '../../../db/quarantine.ts';
import type { RegionStatus, SourceStatus } from '../../../db/sources.ts';
import type { Acknowledgement } from '../../../domain/alert.ts';
import type { Lifecycle } from '../../../domain/lifecycle.ts';
import type { ReasonGroup } from '../../../domain/rejected-rows.ts';
import type { RequestedRun, RunRequests } from '../../../domain/run.ts';
import type { Disabling } from '../../../domain/source.ts';
import type { CatalogueDiff } from '../../../sync/catalogue/match.ts';
import type { CataloguePreview, PreviewRow } from '../../../sync/catalogue/preview.ts';
import type { ClusterDiff } from '../../../sync/clusters/match.ts';
import type { ClusterPreview, ClusterPreviewRow } from '../../../sync/clusters/preview.ts';
import type { Retirement } from '../../../sync/runs/retire-source.ts';
import type { RunCounts } from '../../../sync/runs/run.ts';
import type { BatchTrail } from '../queries/batches.ts';
import type { RunDiff, Unlisted } from '../queries/changes.ts';
import type {
  CataloguePlace,
  ExcludedMachines,
  FoundMachines,
  MachineDetail,
  MachinePoints,
} from '../queries/machines.ts';
import type { RunNeighbours, RunRecord, StripRun } from '../queries/runs.ts';
import type { TimelineEntry } from '../queries/timeline.ts';
import type { MachineCosts } from './costs/cost-answers.ts';

export type { BatchRecord } from '../../../db/held-batches.ts';
export type { QuarantinedRow } from '../../../db/quarantine.ts';
export type { ClusterChange, MachineChange, MachineState } from '../queries/changes.ts';
export type { FoundMachine, MachinePoint, MachineSort } from '../queries/machines.ts';
export type { StripRun } from '../queries/runs.ts';
export type * from './administration-answers.ts';
export type * from './costs/cost-answers.ts';

/** Header of an answer: the mark of the events at the time of the read. */
export const MARK = 'x-fleetbook-mark';

export type { ProblemKind, Severity } from '../../../db/problems.ts';

export interface Problem extends SourceProblem {
  /** The acknowledgement of the alert about the same problem. */
  readonly acknowledgement?: Acknowledgement;
}

export interface Freshness {
  /** Seconds since the last good read; null without one. */
  readonly ageSeconds: number | null;
  /** The largest allowed age (seconds); null for a source that is not configured. */
  readonly objectiveSeconds: number | null;
}

export interface ShownSource extends Omit<SourceStatus, 'regions'>, Freshness {
  readonly configured: boolean;
  readonly schedule: string | null;
  readonly nextSlot: string | null;
  /** The most urgent problem, or another state. `running` is a first run; `not-needed` are rates that no price needs. */
  readonly state: ProblemKind | 'running' | 'retired' | 'disabled' | 'not-needed' | 'ok';
  /** Of its most severe problem; null without one. */
  readonly severity: Severity | null;
  readonly runs: readonly StripRun[];
  readonly changedAt: string | null;
}

export interface QueueDepth {
  readonly name: string;
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
  readonly failed: number;
}

/** A problem that is of no source: of the workers, of a server, or one that an alert reports. */
export interface OtherProblem {
  readonly severity: Severity;
  readonly about: string;
  /** One sentence, without a full stop. */
  readonly text: string;
  /** The page that has more about it. */
  readonly path: string | null;
}

export interface Overview {
  readonly now: string;
  readonly problems: readonly Problem[];
  readonly otherProblems: readonly OtherProblem[];
  readonly sources: readonly ShownSource[];
  /** Null while the queues' Redis does not answer; empty in a process without queues. */
  readonly queues: readonly QueueDepth[] | null;
}

export type { TimelineAction, TimelineEntry, TimelineRun } from '../queries/timeline.ts';

export interface ShownRegion extends RegionStatus, Freshness {}

export interface SourceAnswer {
  readonly source: ShownSource;
  readonly problems: readonly Problem[];
  readonly regions: readonly ShownRegion[];
  readonly scheduleInWords: string | null;
  readonly nextSlots: readonly string[];
  readonly canRun: boolean;
}

export type { SourceSetting as ShownSetting } from '../../../domain/source.ts';

export interface Switched {
  readonly source: string;
  readonly disabled: Disabling | null;
}

export interface CancelledRun {
  readonly source: string;
  readonly run: number;
}

export type RetirementAnswer = Retirement;

export interface Retired extends Pick<Retirement, 'places' | 'rates'> {
  readonly source: string;
  /** False if the cache is down, and is updated later. */
  readonly published: boolean;
}

export interface RequestedRunAnswer extends RequestedRun {
  readonly source: string;
}

export interface TimelineAnswer {
  readonly entries: readonly TimelineEntry[];
  readonly hasOlder: boolean;
}

/** One page of `fleetbook rejected --json`. */
export interface RejectedAnswer {
  readonly source: string;
  readonly total: number;
  readonly reasons: readonly ReasonGroup[];
  readonly rows: readonly QuarantinedRow[];
}

/** One page of `fleetbook excluded --json`. */
export interface ExcludedAnswer extends Pick<ExcludedMachines, 'total' | 'rows'> {
  readonly source: string;
  readonly reasons: readonly (ExcludedMachines['reasons'][number] & { readonly meaning: string })[];
}

/** A version of an engine at one provider, and the end of its support. */
export interface VersionRow extends RunningVersion {
  readonly lifecycle: Lifecycle;
}

export interface LifecycleAnswer {
  /** Days from today. */
  readonly within: number;
  /** When the release cycles were last read; null: never. */
  readonly readAt: string | null;
  /** Clusters of all pages. */
  readonly totals: Readonly<Record<'ended' | 'ending' | 'unknown' | 'all', number>>;
  readonly rows: readonly VersionRow[];
  readonly total: number;
}

export type HeldPreview = {
  readonly reasons: readonly ReasonGroup[];
} & (
  | ({
      readonly kind: 'catalogue';
      readonly currency: string;
      readonly diff: CatalogueDiff;
      readonly regions: Readonly<Record<string, string>>;
    } & CataloguePreview)
  | ({ readonly kind: 'clusters' | 'lifecycles'; readonly diff: ClusterDiff } & ClusterPreview)
);

/** The machines of one name with the same change and the same values on both sides. */
export type HeldMachines = Omit<PreviewRow, 'regionCode'> & { readonly regions: readonly string[] };

export type HeldRow = HeldMachines | ClusterPreviewRow;

/** A batch with a page of its changes. `changes` is null unless the batch waits. */
export interface ShownBatch extends BatchRecord {
  readonly trail: BatchTrail;
  readonly changes: HeldChanges | null;
}

export interface HeldChanges {
  readonly kind: 'catalogue' | 'clusters' | 'lifecycles';
  readonly currency: string | null;
  readonly diff: CatalogueDiff | ClusterDiff;
  readonly reasons: readonly ReasonGroup[];
  /** Rows by kind of change, of the whole batch. */
  readonly totals: Readonly<Record<string, number>>;
  /** Changed machines that readers do not see; 0 for clusters. */
  readonly unseen: number;
  /** Rows of all pages that match. */
  readonly total: number;
  readonly rows: readonly HeldRow[];
  /** A kind of change has more rows than can be searched. Those that change least are left out. */
  readonly isCut: boolean;
}

/** The answers of `/v1/machines/<id>` about a machine of a batch, as JSON; null for a 404. */
export interface ReadersAnswer {
  /** Null for a machine that is not stored yet. */
  readonly id: number | null;
  readonly now: string | null;
  /** After an approval. Unknown ids in it are null. */
  readonly after: string | null;
}

export interface MachinesAnswer extends FoundMachines {
  readonly currency: string | null;
}

export interface PointsAnswer extends MachinePoints {
  readonly currency: string | null;
}

export interface PlacesAnswer {
  readonly providers: readonly CataloguePlace[];
  /** Of the regions, ISO 3166-1 alpha-2. */
  readonly countries: readonly string[];
  readonly continents: readonly string[];
}

export interface MachineAnswer extends MachineDetail, MachineCosts {
  readonly currency: string | null;
}

export interface RunAnswer extends RunNeighbours {
  readonly run: RunRecord;
  /** Null for a run without requests, and for a running one. */
  readonly requests: RunRequests | null;
  /** False if the changes of the run are not stored. */
  readonly isKept: boolean;
  /** Machines whose price changed only by another exchange rate; 0 in a search. */
  readonly unshown: number;
  readonly diff: RunDiff;
}

export interface ChangesAnswer {
  readonly since: string;
  /** The record of changes begins here. */
  readonly keptSince: string;
  /** False if `since` is before `keptSince`. */
  readonly isComplete: boolean;
  readonly provider: string | null;
  readonly diff: Exclude<RunDiff, Unlisted>;
  /** Counts of the other kind of objects: clusters if `diff` is of machines. */
  readonly otherTotals: Readonly<Record<string, number>>;
}

/** The charts: a day in equal steps. Each line has one value for each step. */
export interface ChartsAnswer {
  readonly times: readonly number[];
  /** Ended runs by outcome. `failed` includes interrupted runs. */
  readonly runs: Readonly<Record<'changed' | 'unchanged' | 'held' | 'failed', readonly number[]>>;
  /** Durations of runs that read their source (seconds); null for a step without one. */
  readonly seconds: Readonly<Record<'median' | 'longest', readonly (number | null)[]>>;
  readonly rows: Readonly<Record<'added' | 'changed' | 'retired', readonly number[]>>;
  readonly jobs: JobLines | null;
  readonly publication: {
    readonly documents: number;
    /** The opening of the alert `publication_behind`; null while it is not open. */
    readonly behindSince: string | null;
  };
  readonly held: { readonly batches: number; readonly oldest: string | null };
}

export interface JobLines {
  readonly completed: Readonly<Record<string, readonly number[]>>;
  readonly failed: Readonly<Record<string, readonly number[]>>;
}

export interface Decided {
  readonly batch: number;
  readonly decision: 'approved' | 'rejected' | 'undone';
  /** The counts of an approval, or of its undoing. */
  readonly counts: RunCounts | null;
  /** False if the cache is down, and is updated later. Null if nothing had to be published. */
  readonly published: boolean | null;
}

export interface Failure {
  /** The problem and the remedy. */
  readonly error: string;
  readonly field?: string;
}
