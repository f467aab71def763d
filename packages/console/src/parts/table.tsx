/** A table. On a narrow screen each row is a card, and each cell shows the heading of its column. */
import type { ComponentChildren } from 'preact';
import { addressWith, type Place } from '../lib/router.ts';

/** A column with a `sort` key can sort the table. */
export type Column<Row> = readonly [
  heading: string,
  cell: (row: Row) => ComponentChildren,
  classes?: string,
  sort?: string | undefined,
];

interface TableProps<Row> {
  readonly rows: readonly Row[];
  readonly id: (row: Row) => string | number;
  readonly columns: readonly (Column<Row> | false)[];
  /** The heading of the column with the row's name; the first column by default. */
  readonly name?: string;
  /** The rows belong to the previous search. */
  readonly isOld?: boolean;
  readonly sorting?: Sorting;
  readonly classes?: string;
}

interface Sorting {
  readonly place: Place;
  /** The sort key if the address has none. */
  readonly byDefault: string;
  /** Each column sorts in one direction only. */
  readonly hasOneDirection?: boolean;
}

export function Table<Row>(props: TableProps<Row>) {
  const { rows, id, name, isOld = false, sorting, classes = '' } = props;
  const columns = props.columns.filter((column) => column !== false);
  const nameOfRow = name ?? columns[0]?.[0];
  return (
    <table class={`cards ${classes} ${isOld ? 'old' : ''}`}>
      <thead>
        <tr>
          {columns.map((column) => (
            <Heading key={column[0]} column={column} sorting={sorting} />
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={id(row)}>
            {columns.map(([heading, cell, cellClasses]) =>
              heading === nameOfRow ? (
                <th key={heading} scope="row" class={cellClasses}>
                  {cell(row)}
                </th>
              ) : (
                <td key={heading} class={cellClasses} data-label={heading}>
                  {inOne(cell(row))}
                </td>
              ),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Wraps elements, so that the card has the heading at its left and all of them at its right. */
const inOne = (content: ComponentChildren) => (typeof content === 'object' ? <div>{content}</div> : content);

interface HeadingProps {
  readonly column: Column<never>;
  readonly sorting: Sorting | undefined;
}

function Heading({ column: [heading, , classes = '', key], sorting }: HeadingProps) {
  const headingClass = classes.includes('number') ? 'number' : '';
  if (sorting === undefined || key === undefined)
    return (
      <th scope="col" class={headingClass}>
        {heading}
      </th>
    );
  const { place, byDefault, hasOneDirection = false } = sorting;
  const isSorted = key === (place.query.get('sort') ?? byDefault);
  const isDown = hasOneDirection || place.query.get('order') === 'desc';
  const direction = hasOneDirection ? 'other' : isDown ? 'descending' : 'ascending';
  const address = addressWith(place, {
    sort: key === byDefault ? '' : key,
    order: isSorted && !isDown ? 'desc' : '',
  });
  return (
    <th scope="col" class={headingClass} aria-sort={isSorted ? direction : undefined}>
      <a class="sort" href={address}>
        {heading}
        {isSorted ? (isDown ? ' ▾' : ' ▴') : ''}
      </a>
    </th>
  );
}
