import type { SourcePrice } from './prices/price.ts';

/**
 * The kinds of reasons to quarantine a row. They are few and fixed, because a metric has them as a label.
 * - `invalid`: a field is missing or impossible;
 * - `incomplete`: the source's settings lack a value, which an operator has to add;
 * - `unread_region`: the region could not be read at all;
 * - `unlisted`: represents the rows beyond `REJECTED_KEPT`.
 */
export type RejectionCode =
  | 'invalid'
  | 'incomplete'
  | 'unread_region'
  | 'unknown_region'
  | 'duplicate'
  | 'price_limit'
  | 'price_jump'
  | 'no_exchange_rate'
  | 'unknown_organization'
  | 'deleted_organization'
  | 'unknown_machine'
  | 'unlisted';

/** An unusable row, with all that identifies it; see `RejectedRow` in sources/source.ts. */
export interface RejectedKey {
  readonly key: string;
  readonly regionCode?: string | undefined;
  readonly name?: string | undefined;
  readonly organization?: string | undefined;
  readonly reason: string;
  /** Adapters set none, see `rejectionCode`. */
  readonly code?: RejectionCode | undefined;
  readonly waits?: true | undefined;
  readonly of?: 'database_plan' | undefined;
  readonly price?: SourcePrice | undefined;
}

/** Returns the row that represents an unreadable region with all its machines. Its `key` is the region code. */
export function unreadRegion(regionCode: string, reason: string): RejectedKey {
  return { key: regionCode, regionCode, reason, code: 'unread_region' };
}

/** Rows that are stored with their reasons. The limit protects the memory from an upstream that sends only unusable rows. */
export const REJECTED_KEPT = 10_000;

/** Represents the rows beyond the limit. They may belong to any machine or cluster. */
export const OTHERS: RejectedKey = {
  key: 'others',
  reason: `more than ${REJECTED_KEPT} rows cannot be used; the others are not listed`,
  code: 'unlisted',
};

/** Returns the rows to store: beyond `REJECTED_KEPT` rows, one row represents all others. */
export function boundedRejected(rejected: readonly RejectedKey[]): readonly RejectedKey[] {
  return rejected.length <= REJECTED_KEPT ? rejected : [...rejected.slice(0, REJECTED_KEPT), OTHERS];
}

export function rejectionCode({ code, waits }: RejectedKey): RejectionCode {
  return code ?? (waits ? 'incomplete' : 'invalid');
}

export interface ReasonGroup {
  /** A `RejectionCode` or an `ExclusionReason`. */
  readonly code: string;
  /** Text for operators, without the values of single rows. */
  readonly reason: string;
  readonly count: number;
  readonly examples: readonly string[];
}

const EXAMPLES = 3;

export function groupReasons(rejected: readonly RejectedKey[]): ReasonGroup[] {
  const groups = Map.groupBy(rejected, (row) => `${rejectionCode(row)} ${sharedReason(row)}`);
  return [...groups.values()]
    .map((rows) => ({ rows, first: rows[0] as RejectedKey }))
    .map(({ rows, first }) => ({
      code: rejectionCode(first),
      reason: sharedReason(first),
      count: rows.length,
      examples: rows.slice(0, EXAMPLES).map(quarantineKey),
    }))
    .sort((one, other) => other.count - one.count);
}

/** Returns the key of a row in quarantine. Keys of clusters are unique only within their organization. */
export function quarantineKey({ organization, key }: RejectedKey): string {
  return organization ? `${organization}/${key}` : key;
}

/** Texts for Fleetbook's own reasons that contain a row's values. */
const SHARED_REASONS: Partial<Record<RejectionCode, string>> = {
  duplicate: 'reported more than once in one batch; Fleetbook cannot tell which row is right',
  unknown_region: "its region is not in the provider's list of regions",
  price_limit: 'price is above the limit maxHourlyPrice; a unit may have changed',
  price_jump:
    'price changes by more than the limit priceRatio; readers see the last price until an operator accepts it',
};

/** Returns the reason without the row's names and values and without positions in lists. */
function sharedReason(row: RejectedKey): string {
  const fixed = SHARED_REASONS[rejectionCode(row)];
  if (fixed !== undefined) return fixed;
  const { reason, key, name, regionCode } = row;
  let text = reason.replace(/; it is (?:"(?:[^"\\]|\\.)*"?…?|[^;]*)/g, '').replace(/\[\d+\]/g, '[]');
  const own = [key, name, regionCode].filter((word) => word !== undefined && word !== '');
  for (const word of own.sort((one, other) => (other?.length ?? 0) - (one?.length ?? 0))) {
    text = text.replace(new RegExp(`(?<![\\w-])${escaped(word ?? '')}(?![\\w-])`, 'g'), '…');
  }
  return text;
}

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
