/** Whose changes these are. */
export interface ChangedBy {
  /** Null where an operator did it without a run. */
  readonly runId: number | null;
  readonly sourceId: string;
  /** When all of them take effect, RFC 3339. */
  readonly now: string;
}
