/** The few rows of a held batch that say most about it: what whoever is told of it sees first. */

export interface HeldSampleRow {
  /** What would happen to it: `gone`, `excluded`, `price`, `shape`, `facts`, `published`, `changed` or `new`. */
  readonly change: string;
  readonly name: string;
  /** The region's code of a machine, the organization's slug of a cluster. */
  readonly place: string;
  /** In words; null where there is none. */
  readonly before: string | null;
  readonly after: string | null;
}

export interface HeldSample {
  /** At most `SAMPLE_ROWS`, of each kind of change those that change most. */
  readonly rows: readonly HeldSampleRow[];
  /** How many rows the batch would change for readers. */
  readonly total: number;
}

export const SAMPLE_ROWS = 10;

/** Characters of a name or a value that are kept. */
const LONGEST = 160;

/**
 * Takes the first row of each kind, then the second, and so on: a thousand that go do not hide the one whose price rises
 * a hundredfold.
 * @param rows by kind, of each the one that changes most first
 */
export function sampleOf(rows: readonly HeldSampleRow[], total: number): HeldSample {
  const kinds = [...Map.groupBy(rows, ({ change }) => change).values()];
  const turns = Array.from({ length: SAMPLE_ROWS }, (_, turn) => kinds.flatMap((kind) => kind[turn] ?? []));
  const taken = new Set(turns.flat().slice(0, SAMPLE_ROWS));
  return { rows: rows.filter((row) => taken.has(row)).map(clipped), total };
}

function clipped({ change, name, place, before, after }: HeldSampleRow): HeldSampleRow {
  return {
    change,
    name: clip(name),
    place: clip(place),
    before: before === null ? null : clip(before),
    after: after === null ? null : clip(after),
  };
}

const clip = (text: string): string => (text.length <= LONGEST ? text : `${text.slice(0, LONGEST - 1)}…`);
