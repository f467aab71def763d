import type { SourcePrice } from '../prices/price.ts';

/**
 * The kinds of reasons for which a row is quarantined; few and fixed, so that a metric can have them as a label.
 * - `invalid`: a field is missing or says what no machine or cluster can have;
 * - `incomplete`: it lacks what an operator has yet to say in the source's settings;
 * - `unread_region`: the region could not be read at all;
 * - `unlisted`: stands for the rows beyond those that are kept.
 */
export const REJECTION_CODES = [
  'invalid',
  'incomplete',
  'unread_region',
  'unknown_region',
  'duplicate',
  'price_limit',
  'price_jump',
  'no_exchange_rate',
  'unknown_organization',
  'deleted_organization',
  'unknown_machine',
  'unlisted',
] as const;

export type RejectionCode = (typeof REJECTION_CODES)[number];

/** A row that cannot be used, with what is known of whose it is; see `RejectedRow` in sources/source.ts. */
export interface RejectedKey {
  readonly key: string;
  readonly regionCode?: string | undefined;
  readonly name?: string | undefined;
  readonly organization?: string | undefined;
  readonly reason: string;
  /** Absent on rows of adapters, see `rejectionCode`. */
  readonly code?: RejectionCode | undefined;
  readonly waits?: true | undefined;
  /** The price that was not taken, where an operator may accept it. */
  readonly price?: SourcePrice | undefined;
}

/** What stands for a region that could not be read, and so for every machine there: `key` is its code as well. */
export function unreadRegion(regionCode: string, reason: string): RejectedKey {
  return { key: regionCode, regionCode, reason, code: 'unread_region' };
}

/** So many are kept with their reasons: an upstream that sends nothing but rubbish must not fill the memory. */
export const REJECTED_KEPT = 10_000;

/** What stands for the rows that are not kept: they may be anybody's. */
export const OTHERS: RejectedKey = {
  key: 'others',
  reason: `more than ${REJECTED_KEPT} rows cannot be used; the others are not listed`,
  code: 'unlisted',
};

/** The rows to go by, where one more than `REJECTED_KEPT` were collected at most. */
export function boundedRejected(rejected: readonly RejectedKey[]): readonly RejectedKey[] {
  return rejected.length <= REJECTED_KEPT ? rejected : [...rejected.slice(0, REJECTED_KEPT), OTHERS];
}

/** The kind of a row's reason. */
export function rejectionCode({ code, waits }: RejectedKey): RejectionCode {
  return code ?? (waits ? 'incomplete' : 'invalid');
}

/** Rows that were set aside, or machines that are not published, for one reason. */
export interface ReasonGroup {
  /** A `RejectionCode` or an `ExclusionReason`. */
  readonly code: string;
  /** For an operator, without what differs from row to row. */
  readonly reason: string;
  readonly count: number;
  /** Keys of the first few rows. */
  readonly examples: readonly string[];
}

const EXAMPLES = 3;

/** The reasons of these rows, the most frequent first. */
export function groupReasons(rejected: readonly RejectedKey[]): ReasonGroup[] {
  const groups = new Map<string, { code: string; reason: string; count: number; examples: string[] }>();
  for (const row of rejected) {
    const code = rejectionCode(row);
    const reason = ALIKE[code] ?? commonReason(row);
    const found = groups.get(`${code} ${reason}`);
    const group = found ?? { code, reason, count: 0, examples: [] };
    if (!found) groups.set(`${code} ${reason}`, group);
    group.count += 1;
    if (group.examples.length < EXAMPLES) group.examples.push(quarantineKey(row));
  }
  return [...groups.values()].sort((one, other) => other.count - one.count);
}

/** Under which a row stands in quarantine: keys of clusters are unique only in their organization. */
export function quarantineKey({ organization, key }: RejectedKey): string {
  return organization ? `${organization}/${key}` : key;
}

/** Reasons of our own whose text holds the row's values. */
const ALIKE: Partial<Record<RejectionCode, string>> = {
  duplicate: 'reported more than once in one batch; which one holds cannot be told',
  unknown_region: "its region is none of the provider's regions",
  price_limit: "price is beyond every machine's (limit maxHourlyPrice); a unit may have changed",
  price_jump:
    'price changes by more than the limit priceRatio; readers keep the last one until it is accepted',
};

/** A reason without the row's own names, its values and the positions in its lists. */
function commonReason({ reason, key, name, regionCode }: RejectedKey): string {
  let text = reason.replace(/; it is (?:"(?:[^"\\]|\\.)*"?…?|[^;]*)/g, '').replace(/\[\d+\]/g, '[]');
  const own = [key, name, regionCode].filter((word) => word !== undefined && word !== '');
  for (const word of own.sort((one, other) => (other?.length ?? 0) - (one?.length ?? 0))) {
    text = text.replace(new RegExp(`(?<![\\w-])${escaped(word ?? '')}(?![\\w-])`, 'g'), '…');
  }
  return text;
}

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
