import { EXCLUSION_MEANINGS } from '../../domain/exclusion.ts';
import {
  groupReasons,
  type ReasonGroup,
  type RejectedKey,
  rejectionCode,
} from '../../domain/rejected-rows.ts';
import type { SyncResult } from '../../sync/result.ts';

/** What an exclusion's reason means; the reason itself where it is of another release. */
export function exclusionMeaning(reason: string): string {
  return (EXCLUSION_MEANINGS as Readonly<Record<string, string>>)[reason] ?? reason;
}

/** A line that names the currencies without an exchange rate, and the remedy; no line where none is missing. */
export function missingRateLines(currencies: readonly string[]): string[] {
  if (currencies.length === 0) return [];
  return [
    `no exchange rate for ${currencies.join(', ')}: machines with such prices are not published; set CATALOGUE_RATES, or make EXCHANGE_RATES_URL reachable`,
  ];
}

/** `6 invalid: ncpus is missing … (a, b, c, …)`, a line each. */
export function reasonLines(groups: readonly ReasonGroup[]): string[] {
  return groups.map(({ code, reason, count, examples }) => {
    const more = count > examples.length ? ', …' : '';
    return `  ${count} ${code}: ${reason} (${examples.join(', ')}${more})`;
  });
}

/** Reasons that the end of a sync tells; the commands show all of them. */
const TOLD = 3;

/** What a run could not use and what it took from readers, a line each, and where to see all of it. */
export function setAside(sourceId: string, { rejected, withdrawn }: SyncResult): string[] {
  const groups = groupReasons(rejected);
  const gone = withdrawn.map((group) => ({ ...group, reason: exclusionMeaning(group.reason) }));
  const lines = [...reasonLines(groups.slice(0, TOLD))];
  if (groups.length > TOLD) lines.push(`  and ${groups.length - TOLD} more reasons`);
  if (lines.length > 0) lines.push(`  see: fleetbook rejected ${sourceId}`);
  if (gone.length > 0) {
    lines.push('  readers saw these until now and do not any more:', ...reasonLines(gone.slice(0, TOLD)));
    if (gone.length > TOLD) lines.push(`  and ${gone.length - TOLD} more reasons`);
    lines.push(`  see: fleetbook excluded ${sourceId}`);
  }
  return lines;
}

/** How many of the batch's regions could not be read, e.g. `6 of 9 regions unread`; undefined when all could. */
export function unreadRegions({ rejected, regions }: SyncResult): string | undefined {
  const unread = rejected.filter((row: RejectedKey) => rejectionCode(row) === 'unread_region').length;
  return unread === 0 ? undefined : `${unread} of ${Math.max(regions, unread)} regions unread`;
}
