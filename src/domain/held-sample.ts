/** The few rows of a held batch that an operator sees first, in alerts, commands and the console. */

export interface HeldSampleRow {
  /** The change of the row by the batch: `gone`, `excluded`, `price`, `shape`, `facts`, `published`, `changed` or `new`. */
  readonly change: string;
  readonly name: string;
  /** A machine's region code, or the slug of a cluster's organization. */
  readonly place: string;
  readonly before: string | null;
  readonly after: string | null;
}

export interface HeldSample {
  /** At most `SAMPLE_ROWS`: for each kind of change, the rows that change most. */
  readonly rows: readonly HeldSampleRow[];
  readonly total: number;
}

export const SAMPLE_ROWS = 10;

const LONGEST = 160;

/** Takes the first row of each kind, then the second, and so on: many removed rows must not hide one price jump. */
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
    before: before && clip(before),
    after: after && clip(after),
  };
}

const clip = (text: string): string => (text.length <= LONGEST ? text : `${text.slice(0, LONGEST - 1)}…`);
