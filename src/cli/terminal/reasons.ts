import { EXCLUSION_MEANINGS } from '../../domain/exclusion.ts';
import {
  groupReasons,
  type ReasonGroup,
  type RejectedKey,
  rejectionCode,
} from '../../domain/rejected-rows.ts';
import type { SyncResult } from '../../sync/pipeline.ts';

/** Returns the meaning of a reason; the reason itself if another release wrote it. */
export function exclusionMeaning(reason: string): string {
  return (EXCLUSION_MEANINGS as Readonly<Record<string, string>>)[reason] ?? reason;
}

/** Returns a line that names currencies without an exchange rate and the fix; none if no rate is missing. */
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

/** Returns a line for each reason of unusable and withdrawn rows, and the command that shows all. */
export function setAside(sourceId: string, { rejected, withdrawn }: SyncResult): string[] {
  const groups = groupReasons(rejected);
  const gone = withdrawn.map((group) => ({ ...group, reason: exclusionMeaning(group.reason) }));
  const lines = [...reasonLines(groups.slice(0, SHOWN))];
  if (groups.length > SHOWN) lines.push(`  and ${groups.length - SHOWN} more reasons`);
  if (lines.length > 0) lines.push(`  see: fleetbook rejected ${sourceId}`);
  if (gone.length > 0) {
    lines.push('  withdrawn, which readers saw until now:', ...reasonLines(gone.slice(0, SHOWN)));
    if (gone.length > SHOWN) lines.push(`  and ${gone.length - SHOWN} more reasons`);
    lines.push(`  see: fleetbook excluded ${sourceId}`);
  }
  return lines;
}

/** Returns e.g. `6 of 9 regions unread`; undefined if all regions were read. */
export function unreadRegions({ rejected, regions }: SyncResult): string | undefined {
  const unread = rejected.filter((row: RejectedKey) => rejectionCode(row) === 'unread_region').length;
  return unread === 0 ? undefined : `${unread} of ${Math.max(regions, unread)} regions unread`;
}
