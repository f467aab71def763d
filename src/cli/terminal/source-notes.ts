/** Texts about sources that several commands and processes print. */
import type { SourceStatus } from '../../db/sources.ts';
import { EXCLUSION_MEANINGS } from '../../domain/machine.ts';
import { groupReasons, type ReasonGroup, type RejectedKey } from '../../domain/rejected-rows.ts';
import type { Disabling, Pause } from '../../domain/source.ts';
import type { SyncResult } from '../../sync/pipeline.ts';
import { ago } from './output.ts';

/** Returns e.g. `2 h ago by ada@desk (prices are wrong)`. */
export function disabledBy({ at, by, reason }: Disabling, now: Date): string {
  return `${ago(at, now)} by ${by}${reason === null ? '' : ` (${reason})`}`;
}

export function disabledNote(id: string, disabling: Disabling, now: Date): string {
  return `${id}: disabled ${disabledBy(disabling, now)}: no worker reads it, and its published data stays; to read it again: fleetbook source enable ${id}`;
}

export function pausedNote(id: string, { until, reason }: Pause): string {
  return `${id}: paused until ${until}, and then runs again: ${reason}`;
}

export function notConfigured(
  source: Pick<SourceStatus, 'id' | 'counted' | 'published' | 'verifiedAt' | 'retiredAt'>,
  now: Date,
): string {
  const { id, counted, published, verifiedAt, retiredAt } = source;
  if (retiredAt !== null) return `${id}: retired ${ago(retiredAt, now)}; none of its data is published`;
  const read =
    verifiedAt === null ? 'has never been read successfully' : `was last read ${ago(verifiedAt, now)}`;
  const serves =
    published === 0 ? `it publishes no ${counted}` : `its ${published} ${counted} are still published`;
  return `${id}: not configured here: ${serves}, and it ${read}; unless another worker has it, configure it again or remove its data: fleetbook source retire ${id}`;
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
/** Beyond this the name of a month could mean either year. */
const MONTH_IS_CLEAR_DAYS = 300;

/** Returns a slot in UTC: the time if it is today, else day and time, or the date if it is far ahead. */
export function slotText(slot: string | null, now: Date): string {
  if (slot === null) return '-';
  const time = slot.slice(11, 16);
  if (slot.slice(0, 10) === now.toISOString().slice(0, 10)) return time;
  const at = new Date(slot);
  const isFar = at.getTime() - now.getTime() > MONTH_IS_CLEAR_DAYS * 86_400_000;
  return isFar ? slot.slice(0, 10) : `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]} ${time}`;
}

/** Returns the meaning of a reason; the reason itself if another release wrote it. */
export function exclusionMeaning(reason: string): string {
  return EXCLUSION_MEANINGS[reason] ?? reason;
}

export function missingRateLines(currencies: readonly string[]): string[] {
  if (currencies.length === 0) return [];
  return [
    `no exchange rate for ${currencies.join(', ')}: machines with such prices are not published; set CATALOGUE_RATES, or make EXCHANGE_RATES_URL reachable`,
  ];
}

/** Returns a line for each group, e.g. `6 invalid: ncpus is missing … (a, b, c, …)`. */
export function reasonLines(groups: readonly ReasonGroup[]): string[] {
  return groups.map(({ code, reason, count, examples }) => {
    const more = count > examples.length ? ', …' : '';
    return `  ${count} ${code}: ${reason} (${examples.join(', ')}${more})`;
  });
}

/** Reasons that `sync` prints; other commands print all. */
const SHOWN = 3;

/** Returns a line for each of the most frequent reasons, and where to see all; none without rejected rows. */
export function leadingReasons(sourceId: string, rejected: readonly RejectedKey[]): string[] {
  const groups = groupReasons(rejected);
  const lines = [...reasonLines(groups.slice(0, SHOWN))];
  if (groups.length > SHOWN) lines.push(`  and ${groups.length - SHOWN} more reasons`);
  if (lines.length > 0) lines.push(`  see: fleetbook rejected ${sourceId}`);
  return lines;
}

export function setAside(sourceId: string, { rejected, withdrawn }: SyncResult): string[] {
  const gone = withdrawn.map((group) => ({ ...group, reason: exclusionMeaning(group.reason) }));
  const lines = leadingReasons(sourceId, rejected);
  if (gone.length > 0) {
    lines.push('  withdrawn, which readers saw until now:', ...reasonLines(gone.slice(0, SHOWN)));
    if (gone.length > SHOWN) lines.push(`  and ${gone.length - SHOWN} more reasons`);
    lines.push(`  see: fleetbook excluded ${sourceId}`);
  }
  return lines;
}
