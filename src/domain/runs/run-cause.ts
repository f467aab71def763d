/** Why a run began. Pure. */

/**
 * - `slot`: a slot of its schedule;
 * - `first`: the same, and the source had never run before;
 * - `retry`: the same slot again, after a run of it failed;
 * - `hand`: a person asked for it, by `fleetbook sync` or in the console;
 * - `watch`: a state that a watched control plane told of;
 * - `follow`: new machines, on which clusters of this source may run;
 * - `decision`: an operator approved a held batch, or took an approval back.
 */
export const RUN_CAUSES = ['slot', 'first', 'retry', 'hand', 'watch', 'follow', 'decision'] as const;

export type RunCause = (typeof RUN_CAUSES)[number];

/** As far as it is known: runs of earlier releases have no cause, but for those of a slot or a decision. */
export interface Caused {
  readonly cause: RunCause | null;
  /** Who asked for it; null where no person did, or it is not known. */
  readonly askedBy: string | null;
}

/** `by schedule`, `by hand, by ada`; empty where it is not known. */
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
