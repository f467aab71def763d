/** A run: its cause and its HTTP requests. */

/**
 * - `slot`: a slot of its schedule;
 * - `first`: the first run of the source, in a slot of its schedule;
 * - `retry`: the same slot again, after a failed run;
 * - `hand`: a person started it, by `fleetbook sync` or in the console;
 * - `watch`: a watched control plane reported a new state;
 * - `follow`: a catalogue has new machines, which the source's clusters may use;
 * - `decision`: an operator approved a held batch, or undid an approval.
 */
export const RUN_CAUSES = ['slot', 'first', 'retry', 'hand', 'watch', 'follow', 'decision'] as const;

export type RunCause = (typeof RUN_CAUSES)[number];

export interface Caused {
  /** Null for some runs of earlier releases. */
  readonly cause: RunCause | null;
  /** The person who started the run; null for a run without one. */
  readonly askedBy: string | null;
}

/** Returns the cause as text: `by schedule`, `by hand, by ada`; empty for an unknown cause. */
export function causeInWords({ cause, askedBy }: Caused): string {
  const who = askedBy === null ? '' : `, by ${askedBy}`;
  switch (cause) {
    case 'slot':
      return 'by schedule';
    case 'first':
      return 'the first run';
    case 'retry':
      return 'a retry';
    case 'hand':
      return `by hand${who}`;
    case 'watch':
      return 'by a watch';
    case 'follow':
      return 'after new machines';
    case 'decision':
      return `by a decision${who}`;
    case null:
      return '';
  }
}

/** An HTTP request to the upstream, with all its attempts. */
export interface RunRequest {
  /** Position in the run, from 1. */
  readonly n: number;
  /** Origin, path and page numbers, without the rest of the query; see sources/http/request-log.ts. */
  readonly address: string;
  /** Status of the last answer; null without one. */
  readonly status: number | null;
  /** Length of the last answer's body, decompressed. */
  readonly bytes: number;
  /** Milliseconds from the first attempt to the last byte, pauses included. */
  readonly ms: number;
  readonly attempts: number;
  /** The failure; null for a success. */
  readonly error: string | null;
}

/** Sums over all requests of a run, and the stored requests. */
export interface RunRequests {
  readonly total: number;
  readonly attempts: number;
  readonly failed: number;
  readonly bytes: number;
  readonly ms: number;
  /** In order: the first requests, the failed ones and the slowest ones. */
  readonly kept: readonly RunRequest[];
}
