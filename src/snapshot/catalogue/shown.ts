/** Machines in search answers: the fields of the contract, and facts. */
import type { MachineFactsDocument } from '../../domain/machine.ts';
import { byColumn, type FactsDocument } from '../../domain/machine-facts.ts';
import type { MachineKind } from '../document/columns.ts';
import type { CatalogueIndex, IndexedRegion } from './catalogue-index.ts';

export type MachineField = keyof MachineFactsDocument;

interface Row {
  readonly id: number;
  readonly price: number;
  readonly name: string;
  readonly kind: MachineKind;
  readonly region: IndexedRegion;
}

type Fields<Field extends MachineField> = { readonly [K in Field]-?: (row: Row) => MachineFactsDocument[K] };

const FIELDS: Fields<MachineField> = {
  id: ({ id }) => id,
  name: ({ name }) => name,
  ram: ({ kind }) => kind.ram,
  cpu: ({ kind }) => kind.cpu,
  price: ({ price }) => price,
  ram_unit: ({ kind }) => kind.ramUnit,
  provider: ({ region }) => region.provider,
  region: ({ region }) => region.region,
  ...(byColumn(
    (field) =>
      ({ kind }: Row) =>
        kind[field],
  ) as Fields<keyof FactsDocument>),
  available: ({ kind }) => (kind.isSoldOut ? false : undefined),
};

export const MACHINE_FIELDS = Object.keys(FIELDS) as MachineField[];

export function machineOfRow(
  { rows, dictionary, kindOf, regions }: CatalogueIndex,
  row: number,
  fields: readonly MachineField[] = MACHINE_FIELDS,
): Partial<MachineFactsDocument> {
  const type = rows.types[row] as number;
  const name = dictionary.names[type];
  const kind = dictionary.kinds[kindOf[type] as number]?.facts;
  const region = regions[rows.regions[row] as number];
  if (name === undefined || !kind || !region)
    throw new Error('unreachable: every row has a type and a region');
  const of: Row = { id: rows.ids[row] as number, price: rows.prices[row] as number, name, kind, region };
  return Object.fromEntries(fields.map((field) => [field, FIELDS[field](of)]));
}
