import { PlainFailure } from '../lib/plain-failure.ts';

/** Why a source is disabled. */
export interface Disabling {
  /** RFC 3339. */
  readonly at: string;
  /** The operator, e.g. `ada@desk`. */
  readonly by: string;
  readonly reason: string | null;
}

/** Replaces the operator's name if the worker disabled a source, because its runs ended the process. */
export const SET_ASIDE_BY = 'fleetbook work';

/** A request to run a disabled source. The message names the operator and the command that enables the source. */
export class SourceDisabled extends PlainFailure {
  override readonly name = 'SourceDisabled';

  constructor(sourceId: string, { at, by, reason }: Disabling) {
    const why = reason === null ? '' : ` (${reason})`;
    super(
      `source "${sourceId}" was disabled at ${at} by ${by}${why}; to read it again: fleetbook source enable ${sourceId}`,
    );
  }
}
