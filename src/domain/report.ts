/**
 * What a process says of itself every few seconds, for the charts of the console. Reports are differences: whoever adds
 * up those of a time has counted everything once, however many processes there were and whichever ended meanwhile.
 */

/** Milliseconds between two reports of a process. */
export const REPORT_EVERY_MS = 10_000;

/** The classes of status that are told apart, in the order of `ReaderReport.statuses`. */
export const STATUS_CLASSES = ['2xx', '3xx', '4xx', '5xx'] as const;

interface CommonReport {
  /** Another one for each process, also on one host. */
  readonly process: string;
  /**
   * Which report of the process it is, from 0. One that may not have arrived is sent again under the same number with
   * all that was counted since: the last of a number counts, and nothing is counted twice.
   */
  readonly number: number;
  /** How long the time was that it tells of, up to when it was sent. */
  readonly seconds: number;
}

/** What a reader has answered in that time. */
export interface ReaderReport extends CommonReport {
  readonly kind: 'reader';
  /** Answers by `STATUS_CLASSES`. */
  readonly statuses: readonly number[];
  /** Answers by the index of the first bound that their duration does not exceed, then those beyond all bounds. */
  readonly durations: readonly number[];
  /** Tier → answers. */
  readonly tiers: Readonly<Record<string, number>>;
}

/** What a worker saw at the end of that time. Every worker sees the same: their figures are not added up. */
export interface WorkerReport extends CommonReport {
  readonly kind: 'worker';
  /** For how many seconds the cache has lacked what it lacks, the longest; null where nobody compares. */
  readonly lagSeconds: number | null;
  /** Documents that are dirty; null where Postgres did not answer. */
  readonly dirty: number | null;
  /** Queue → jobs that wait; null where the queues' Redis did not answer. */
  readonly waiting: Readonly<Record<string, number>> | null;
}

export type Report = ReaderReport | WorkerReport;

/** Undefined for what is no report, or one of another release that this one does not understand. */
export function parseReport(text: string): Report | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(value) || typeof value.process !== 'string') return undefined;
  if (!isCount(value.number) || !isCount(value.seconds)) return undefined;
  if (value.kind === 'reader')
    return isCounts(value.statuses) && isCounts(value.durations) && isCountRecord(value.tiers)
      ? (value as unknown as ReaderReport)
      : undefined;
  if (value.kind === 'worker')
    return isCountOrNull(value.lagSeconds) &&
      isCountOrNull(value.dirty) &&
      (value.waiting === null || isCountRecord(value.waiting))
      ? (value as unknown as WorkerReport)
      : undefined;
  return undefined;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0;
const isCountOrNull = (value: unknown) => value === null || isCount(value);
const isCounts = (value: unknown) => Array.isArray(value) && value.every(isCount);
const isCountRecord = (value: unknown) => isRecord(value) && Object.values(value).every(isCount);
