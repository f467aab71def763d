/** Machines as searches show them: as the contract has them, with their facts. */
import type { MachineFactsDocument } from '../../domain/machine-facts.ts';
import type { CatalogueIndex, IndexedRegion } from './catalogue-index.ts';
import type { MachineType } from './dictionary.ts';

export type MachineField = keyof MachineFactsDocument;

interface Row {
  readonly id: number;
  readonly price: number;
  readonly type: MachineType;
  readonly region: IndexedRegion;
}

/** In the order in which they are shown. */
const FIELDS: { readonly [K in MachineField]-?: (row: Row) => MachineFactsDocument[K] } = {
  id: ({ id }) => id,
  name: ({ type }) => type.name,
  ram: ({ type }) => type.kind.ram,
  cpu: ({ type }) => type.kind.cpu,
  price: ({ price }) => price,
  ram_unit: ({ type }) => type.kind.ramUnit,
  provider: ({ region }) => region.provider,
  region: ({ region }) => region.region,
  architecture: ({ type }) => type.kind.architecture,
  generation: ({ type }) => type.kind.generation,
  cpu_kind: ({ type }) => type.kind.cpuKind,
  local_disk: ({ type }) => type.kind.localDisk,
  network: ({ type }) => type.kind.network,
  available: ({ type }) => (type.kind.isSoldOut ? false : undefined),
};

export const MACHINE_FIELDS = Object.keys(FIELDS) as MachineField[];

/** @param fields those that are shown; all unless given */
export function machineOfRow(
  { rows, dictionary, regions }: CatalogueIndex,
  row: number,
  fields: readonly MachineField[] = MACHINE_FIELDS,
): Partial<MachineFactsDocument> {
  const type = dictionary.types[rows.types[row] as number];
  const region = regions[rows.regions[row] as number];
  if (!type || !region) throw new Error('unreachable: every row has a type and a region');
  const of: Row = { id: rows.ids[row] as number, price: rows.prices[row] as number, type, region };
  return Object.fromEntries(fields.map((field) => [field, FIELDS[field](of)]));
}
