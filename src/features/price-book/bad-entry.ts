import { PlainFailure } from '../../domain/errors.ts';

/** The fields of an entry, of a file and of a change. */
export type Field = (typeof ENTRY_FIELDS)[number] | 'organization' | 'currency' | 'entries' | 'entry' | 'at';

export const ENTRY_FIELDS = [
  'provider',
  'region',
  'family',
  'machine',
  'term',
  'discount',
  'price',
  'from',
  'to',
] as const;

/** An entry, or a change of a book, is refused. Nothing was stored. */
export class BadEntry extends PlainFailure {
  override readonly name = 'BadEntry';
  readonly field: Field;
  readonly problem: string;
  readonly remedy: string;
  /** The place of the entry in a file, from 1. */
  readonly place: number | undefined;

  constructor(field: Field, problem: string, remedy: string, place?: number) {
    super(`${place === undefined ? '' : `entry ${place}: `}${field} ${problem}; ${remedy}`);
    this.field = field;
    this.problem = problem;
    this.remedy = remedy;
    this.place = place;
  }

  at(place: number): BadEntry {
    return new BadEntry(this.field, this.problem, this.remedy, place);
  }
}
