import { PlainFailure } from '../plain-failure.ts';

/** That an operator has disabled a source. */
export interface Disabling {
  /** RFC 3339. */
  readonly at: string;
  /** Who has disabled it, e.g. `ada@desk`. */
  readonly by: string;
  readonly reason: string | null;
}

/** In place of an operator: the worker has disabled a source whose runs ended their process. No operator has this name. */
export const SET_ASIDE_BY = 'fleetbook work';

/** A run that was asked for of a source that is disabled. The message says by whom, and how to enable it. */
export class SourceDisabled extends PlainFailure {
  override readonly name = 'SourceDisabled';

  constructor(sourceId: string, { at, by, reason }: Disabling) {
    const why = reason === null ? '' : ` (${reason})`;
    super(
      `source "${sourceId}" was disabled at ${at} by ${by}${why}; to read it again: fleetbook source enable ${sourceId}`,
    );
  }
}
