/** Machines in search answers: the fields of the contract, and facts. */
import type { MachineFactsDocument } from '../domain/machine.ts';
import { byColumn, type FactsDocument } from '../domain/machine-facts.ts';
import { type CatalogueIndex, type IndexedMachine, indexedMachine } from './catalogue-index.ts';

export type MachineField = keyof MachineFactsDocument;

type Fields<Field extends MachineField> = {
  readonly [K in Field]-?: (machine: IndexedMachine) => MachineFactsDocument[K];
};

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
      ({ kind }: IndexedMachine) =>
        kind[field],
  ) as Fields<keyof FactsDocument>),
  available: ({ kind }) => (kind.isSoldOut ? false : undefined),
};

export const MACHINE_FIELDS = Object.keys(FIELDS) as MachineField[];

export function machineOfRow(
  index: CatalogueIndex,
  row: number,
  fields: readonly MachineField[] = MACHINE_FIELDS,
): Partial<MachineFactsDocument> {
  const machine = indexedMachine(index, row);
  return Object.fromEntries(fields.map((field) => [field, FIELDS[field](machine)]));
}
