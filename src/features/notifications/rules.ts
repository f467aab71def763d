import { RETIREMENT_NOTICE_DAYS } from '../../domain/end-of-sale.ts';
import { FAILURES_IN_ROW } from '../../domain/source.ts';
import type { Receiver } from './send.ts';

/** Its address is never stored or shown. */
export interface Webhook extends Receiver {
  /** The name in the database, in logs and in commands. */
  readonly id: string;
  readonly format: 'standard' | 'slack';
  readonly kinds: readonly string[] | undefined;
}

export interface AlertRules {
  readonly webhooks: readonly Webhook[];
  readonly failuresInRow: number;
  readonly priceRatio: number;
  readonly backlog: number;
  readonly repeatHours: number;
  /** The console's public address (OPS_URL); undefined for messages without links. */
  readonly opsUrl: string | undefined;
}

/** The alert of a region opens if this share of its published and sold-out machines is sold out. */
export const SOLD_OUT_SHARE = 0.5;
/** A region with fewer sold-out machines opens no alert. */
export const SOLD_OUT_AT_LEAST = 3;

export const NO_ALERTS: AlertRules = {
  webhooks: [],
  failuresInRow: FAILURES_IN_ROW,
  priceRatio: 1.5,
  backlog: 100,
  repeatHours: 24,
  opsUrl: undefined,
};

/** Describes when the alert of each kind of the core opens. */
export function rulesInWords(rules: Pick<AlertRules, 'failuresInRow' | 'priceRatio' | 'backlog'>) {
  return {
    batch_held: 'a guard holds a batch for a decision',
    source_stale: 'the last good run of a source is older than its maxAge',
    region_stale: 'the last good read of a region is older than the maxAge of its source, which is not stale',
    source_failing: `${rules.failuresInRow} runs in a row of a source failed`,
    sold_out: `at least ${SOLD_OUT_SHARE * 100} % of a region's machines are sold out, and at least ${SOLD_OUT_AT_LEAST} machines`,
    machine_retiring: `clusters run on a machine that its provider retires within ${RETIREMENT_NOTICE_DAYS} days, or has retired`,
    source_paused:
      'two runs of a source ended their worker process within an hour, so Fleetbook paused the source for an hour',
    prices_moved: `a run moved prices by more than a factor of ${rules.priceRatio}; one message, no reminders`,
    stock_flipped:
      'a run found nearly all machines of a source sold out, or available, and half of them were not before; one message, no reminders',
    publication_behind: `more than ${rules.backlog} documents have waited for publication for five minutes`,
    cache_differs: 'the cache differed from the database within the last hour',
  };
}

/** A kind of alert of the core. Features add kinds. */
export type CoreKind = keyof ReturnType<typeof rulesInWords>;
export const ALERT_KINDS = Object.keys(rulesInWords(NO_ALERTS));
