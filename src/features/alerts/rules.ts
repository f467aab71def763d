/** When alerts open, and which webhooks receive them. */

/** Kinds of conditions of the core. Features add kinds. */
export const ALERT_KINDS = [
  'batch_held',
  'source_stale',
  'region_stale',
  'source_failing',
  'sold_out',
  'source_set_aside',
  'prices_moved',
  'publication_behind',
  'cache_differs',
] as const;

type AlertKind = (typeof ALERT_KINDS)[number];

export interface Webhook {
  /** Names it in the database, in logs and on the command line. */
  readonly id: string;
  /** Some receivers have a secret in their address: it is never written anywhere. */
  readonly url: string;
  /** Signs each message; undefined for receivers that check no signature. */
  readonly secret: Buffer | undefined;
  readonly format: 'standard' | 'slack';
  /** The kinds that it is told of; undefined for all. */
  readonly kinds: readonly string[] | undefined;
}

export interface AlertRules {
  readonly webhooks: readonly Webhook[];
  /** So many failed runs in a row are an alert. */
  readonly failuresInRow: number;
  /** A price that moves by more than this factor is an alert. */
  readonly priceRatio: number;
  /** More documents than this that wait to be published are an alert. */
  readonly backlog: number;
  /** Hours after which an alert that is still open is told again. */
  readonly repeatHours: number;
  /** The console's public address (OPS_URL); undefined for messages without links. */
  readonly opsUrl: string | undefined;
}

/** Share of a region's machines, published or sold out, that are sold out when its alert opens. */
export const SOLD_OUT_SHARE = 0.5;
/** A region with fewer sold-out machines opens no alert. */
export const SOLD_OUT_AT_LEAST = 3;

/** Nobody is told. */
export const NO_ALERTS: AlertRules = {
  webhooks: [],
  failuresInRow: 3,
  priceRatio: 1.5,
  backlog: 100,
  repeatHours: 24,
  opsUrl: undefined,
};

/** When an alert of each kind of the core opens, by these rules, in words. */
export function rulesInWords(rules: AlertRules): Readonly<Record<AlertKind, string>> {
  return {
    batch_held: 'a guard holds a batch for a decision',
    source_stale: 'the last good run of a source is older than its maxAge',
    region_stale: 'the same of one region, while the source is not stale',
    source_failing: `${rules.failuresInRow} runs in a row of a source failed`,
    sold_out: `${SOLD_OUT_SHARE * 100} % or more of a region's machines are sold out, and at least ${SOLD_OUT_AT_LEAST} of them`,
    source_set_aside: 'two runs of a source ended the process of their worker, which disabled the source',
    prices_moved: `a run moved prices by more than a factor of ${rules.priceRatio}; told once`,
    publication_behind: `for five minutes more than ${rules.backlog} documents waited to be published`,
    cache_differs: 'within the last hour the cache held something else than the database',
  };
}
