/** Texts about sources that several commands and processes print. */
import type { SourceStatus } from '../../db/sources.ts';
import type { Disabling } from '../../domain/source.ts';
import { ago } from './table.ts';

/** Says who disabled a source, and how to enable it. */
export function disabledNote(id: string, { at, by, reason }: Disabling, now: Date): string {
  const why = reason === null ? '' : ` (${reason})`;
  return `${id}: disabled ${ago(at, now)} by ${by}${why}: no worker reads it, and its published data stays; to read it again: fleetbook source enable ${id}`;
}

/** Says what a source without a configuration still publishes, and what to do. */
export function notConfigured(
  {
    id,
    kind,
    published,
    verifiedAt,
    retiredAt,
  }: Pick<SourceStatus, 'id' | 'kind' | 'published' | 'verifiedAt' | 'retiredAt'>,
  now: Date,
): string {
  if (retiredAt !== null) return `${id}: retired ${ago(retiredAt, now)}; none of its data is published`;
  const what = { catalogue: 'machines', clusters: 'clusters', rates: 'exchange rates' }[kind];
  const read =
    verifiedAt === null ? 'has never been read successfully' : `was last read ${ago(verifiedAt, now)}`;
  const serves = published === 0 ? `it publishes no ${what}` : `its ${published} ${what} are still published`;
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
