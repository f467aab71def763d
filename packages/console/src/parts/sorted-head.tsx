/** The head of a table that the server sorts. */
import { addressWith, type Place } from '../lib/router.ts';

/** What the server is asked to sort it by, where it can be. */
export type Column<Sort extends string = string> = readonly [
  sort: Sort | undefined,
  text: string,
  isNumber?: boolean,
];

interface SortedHeadProps {
  readonly place: Place;
  readonly columns: readonly Column[];
  /** What it is sorted by unless the address says otherwise. */
  readonly usual: string;
}

export function SortedHead({ place, columns, usual }: SortedHeadProps) {
  const sort = place.query.get('sort') ?? usual;
  const isDown = place.query.get('order') === 'desc';
  const by = (key: string) =>
    addressWith(place, { sort: key === usual ? '' : key, order: key === sort && !isDown ? 'desc' : '' });
  return (
    <thead>
      <tr>
        {columns.map(([key, text, isNumber]) => (
          <th
            key={text}
            scope="col"
            class={isNumber ? 'number' : ''}
            aria-sort={key !== sort ? undefined : isDown ? 'descending' : 'ascending'}
          >
            {key === undefined ? (
              text
            ) : (
              <a class="sort" href={by(key)}>
                {text}
                {key === sort ? (isDown ? ' ▾' : ' ▴') : ''}
              </a>
            )}
          </th>
        ))}
      </tr>
    </thead>
  );
}
