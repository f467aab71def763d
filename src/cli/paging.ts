import { UsageFailure } from './failure.ts';

export interface PageOptions {
  readonly limit?: string;
  readonly all?: boolean;
  readonly json?: boolean;
}

/** Rows that are printed of one kind unless more are asked for. */
const SHOWN = 20;

/**
 * How many rows of a kind to show; undefined for all. JSON is whole unless a limit is given.
 * @throws UsageFailure
 */
export function pageLimit({ limit, all, json }: PageOptions): number | undefined {
  if (limit !== undefined) {
    const count = /^[1-9]\d{0,8}$/.test(limit) ? Number(limit) : undefined;
    if (count !== undefined && !all) return count;
    throw new UsageFailure(
      count === undefined
        ? `--limit must be a count from 1; it is "${limit}"`
        : '--limit and --all exclude each other; give one of them',
    );
  }
  return all || json ? undefined : SHOWN;
}

/** The line that stands for what is not shown, with its end; nothing where all is. */
export function moreLine(shown: number, total: number, what = ''): string {
  const more = total - shown;
  if (more <= 0) return '';
  return `  … ${more} more${what && ` ${what}`}; see --all, or --limit <count>\n`;
}
