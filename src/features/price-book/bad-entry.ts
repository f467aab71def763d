import { BadInput } from '../../domain/input.ts';

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
export class BadEntry extends BadInput {
  /** @param remedy unless the problem states it */
  constructor(field: Field, problem: string, remedy?: string) {
    super(field, remedy === undefined ? problem : `${problem}; ${remedy}`);
  }

  /** Returns this failure with the place of the entry in a file, from 1. */
  at(place: number): this {
    this.message = `entry ${place}: ${this.message}`;
    return this;
  }
}
