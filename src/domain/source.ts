import { PlainFailure } from './errors.ts';

type Origin =
  | { readonly from: 'environment'; readonly variable: string }
  | { readonly from: 'file'; readonly file: string }
  | { readonly from: 'default' }
  | { readonly from: 'unset' };

export type SourceSetting = Origin & {
  /** Its name in the file of sources: `url`, `schedule`, `token`, `options.region`, `limits.removedShare`. */
  readonly name: string;
  /** `***` for a secret; null if not set. */
  readonly value: string | null;
};

export function originInWords(setting: SourceSetting): string {
  if (setting.from === 'file') return setting.file;
  if (setting.from !== 'environment') return setting.from === 'default' ? 'default' : 'not set';
  return setting.value === null ? `${setting.variable}, which is not set` : setting.variable;
}

/** The rows that the status of a source counts, by its kind. A catalogue without machines has plans of databases. */
export const COUNTED = {
  catalogue: 'machines',
  clusters: 'clusters',
  rates: 'exchange rates',
  lifecycles: 'release cycles',
} as const;
export type Counted = (typeof COUNTED)[keyof typeof COUNTED] | 'database plans';

export interface Disabling {
  readonly at: string;
  readonly by: string;
  readonly reason: string | null;
}

/** A source that no worker runs for an hour, because its runs ended the process of their worker. */
export interface Pause {
  /** RFC 3339. */
  readonly until: string;
  readonly reason: string;
}

/** An attempt of a paused source. */
export class SourcePaused extends PlainFailure {
  override readonly name = 'SourcePaused';

  constructor(sourceId: string, { until, reason }: Pause) {
    super(`source "${sourceId}" is paused until ${until}: ${reason}`);
  }
}

/** So many failed runs in a row are a problem. An alert opens for as many, unless its rule states another number. */
export const FAILURES_IN_ROW = 3;

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
