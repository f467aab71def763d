/** The HTTP requests of one run to its upstream. Pure. */

/** One request, with all its attempts. */
export interface RunRequest {
  /** Its number within the run, from 1. */
  readonly n: number;
  /** Origin and path; of the query only page numbers, see sources/http/request-log.ts. */
  readonly address: string;
  /** Of the last answer; null where none came. */
  readonly status: number | null;
  /** Of the last answer's body, decompressed. */
  readonly bytes: number;
  /** Milliseconds from the first attempt until the last byte was read, pauses between attempts included. */
  readonly ms: number;
  readonly attempts: number;
  /** Why it failed; null for one that did not. */
  readonly error: string | null;
}

/** Sums over all requests of a run, and the requests that are kept. */
export interface RunRequests {
  readonly total: number;
  readonly attempts: number;
  readonly failed: number;
  readonly bytes: number;
  readonly ms: number;
  /** The first ones, and of the others those that failed and the slowest. In order. */
  readonly kept: readonly RunRequest[];
}

const UNITS = ['B', 'kB', 'MB', 'GB'] as const;

/** `512 B`, `1.4 MB` */
export function bytesInWords(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  const value = bytes / 1000 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[power]}`;
}

/** `85 ms`, `1.4 s` */
export const msInWords = (ms: number): string =>
  ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
