import type { ComponentChildren } from 'preact';
import { count } from '../lib/format.ts';
import { addressWith, type Place } from '../lib/router.ts';

interface PagerProps {
  readonly place: Place;
  readonly total: number;
  /** Rows per page. */
  readonly limit: number;
  readonly what: string;
  /** There are more rows than `total`; the server did not count them. */
  readonly isMore?: boolean;
}

/** Shows the position and number of the rows, with links to the previous and the next page. */
export function Pager({ place, total, limit, what, isMore = false }: PagerProps) {
  const offset = Number(place.query.get('offset') ?? 0);
  const last = Math.min(offset + limit, total);
  const all = `${count(total)}${isMore ? ' or more' : ''} ${what}`;
  return (
    <Links
      label={`Pages of ${what}`}
      links={[
        offset > 0 && ['Previous', toOffset(place, offset - limit)],
        last < total && ['Next', toOffset(place, offset + limit)],
      ]}
    >
      <span>{total === 0 ? `no ${what}` : `${count(offset + 1)}–${count(last)} of ${all}`}</span>
    </Links>
  );
}

export const toOffset = (place: Place, offset: number): string =>
  addressWith(place, { offset: offset > 0 ? String(offset) : '' });

interface LinksProps {
  readonly label: string;
  readonly links: readonly (readonly [text: string, address: string] | false | undefined)[];
  readonly children?: ComponentChildren;
}

/** Links to other pages of a list. */
export function Links({ label, links, children }: LinksProps) {
  return (
    <nav class="pager" aria-label={label}>
      {children}
      {links.map(
        (link) =>
          link && (
            <a key={link[0]} class="button" href={link[1]}>
              {link[0]}
            </a>
          ),
      )}
    </nav>
  );
}
