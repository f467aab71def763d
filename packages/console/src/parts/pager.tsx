import { count } from '../lib/format.ts';
import { addressWith, type Place } from '../lib/router.ts';

interface PagerProps {
  readonly place: Place;
  readonly total: number;
  /** Rows of a page. */
  readonly limit: number;
  readonly what: string;
  /** Whether there are more than `total`, which were not counted. */
  readonly isMore?: boolean;
}

/** Which rows are shown of how many, and the ways to the others. */
export function Pager({ place, total, limit, what, isMore = false }: PagerProps) {
  const offset = Number(place.query.get('offset') ?? 0);
  const last = Math.min(offset + limit, total);
  const to = (next: number) => addressWith(place, { offset: next > 0 ? String(next) : '' });
  const all = `${count(total)}${isMore ? ' or more' : ''} ${what}`;
  return (
    <nav class="pager" aria-label={`Pages of ${what}`}>
      <span>{total === 0 ? `no ${what}` : `${count(offset + 1)}–${count(last)} of ${all}`}</span>
      {offset > 0 && (
        <a class="button" href={to(offset - limit)}>
          Previous
        </a>
      )}
      {last < total && (
        <a class="button" href={to(offset + limit)}>
          Next
        </a>
      )}
    </nav>
  );
}
