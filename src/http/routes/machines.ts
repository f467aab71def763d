import { z } from 'zod';
import type { MachineDocument, MachineFactsDocument } from '../../domain/machine.ts';
import { byColumn, type FactsDocument, MACHINE_FACTS } from '../../domain/machine-facts.ts';
import type { CatalogueReader } from '../../snapshot/document/answer.ts';
import type { ProviderListing } from '../../snapshot/document/build.ts';
import { type Operation, operation } from '../operation.ts';
import { idParameter } from '../protocol/parameters.ts';

export const MACHINE_EXAMPLE: MachineDocument = {
  id: 17,
  name: 'cax11',
  ram: 4,
  cpu: 2,
  price: 0.000103791666666667,
  ram_unit: 'Decimal',
  provider: { id: 5, name: 'Hetzner' },
  region: { id: 3, name: 'Falkenstein', code: 'fsn1' },
};
const PROVIDER_EXAMPLE: ProviderListing = {
  id: 5,
  name: 'Hetzner',
  regions: [MACHINE_EXAMPLE.region],
};
/** For operations that also state facts. */
export const MACHINE_WITH_FACTS_EXAMPLE: MachineFactsDocument = {
  ...MACHINE_EXAMPLE,
  ...(byColumn((field) => MACHINE_FACTS[field].example) as FactsDocument),
};
const machineId = idParameter({ description: 'Machine id', example: MACHINE_EXAMPLE.id });

export function machineOperations(catalogue: CatalogueReader): Operation[] {
  return [
    operation({
      path: '/v1/providers',
      scope: 'machines:read',
      parameters: {},
      doc: {
        id: 'listProviders',
        summary: 'Providers and their regions',
        description: 'Lists the ids for `/v1/machines`.',
        answers: ({ provider }) => z.array(provider),
        example: [PROVIDER_EXAMPLE],
        extension: true,
      },
      read: () => catalogue.providers(),
      shared: true,
    }),
    operation({
      path: '/v1/machines',
      scope: 'machines:read',
      parameters: {
        provider: idParameter({
          description: 'Provider id; `/v1/providers` lists them',
          example: MACHINE_EXAMPLE.provider.id,
          listedBy: '/v1/providers',
        }),
        region: idParameter({
          description: 'Region id; `/v1/providers` lists them',
          example: MACHINE_EXAMPLE.region.id,
          listedBy: '/v1/providers',
        }),
      },
      doc: {
        id: 'listMachines',
        summary: 'Machines of a region',
        description:
          'Cheapest first, then by id. Empty if nothing matches, or if the provider or region does not exist. Other query parameters are ignored: `/v1/machines/search` has filters.',
        answers: ({ machine }) => z.array(machine),
        example: [MACHINE_EXAMPLE],
        extension: false,
      },
      read: ({ provider, region }) => catalogue.machines(provider, region),
      shared: true,
    }),
    operation({
      path: '/v1/machines/{id}',
      scope: 'machines:read',
      parameters: { id: machineId },
      doc: {
        id: 'getMachine',
        summary: 'One machine',
        description: '404 for a machine that is not in the published catalogue.',
        answers: ({ machine }) => machine,
        example: MACHINE_EXAMPLE,
        extension: false,
      },
      read: ({ id }, { organizationId }) => catalogue.machine(id, organizationId),
      shared: true,
    }),
    operation({
      path: '/v1/machines/{id}/prices',
      scope: 'machines:read',
      parameters: { id: machineId },
      doc: {
        id: 'listMachinePrices',
        summary: 'Prices of a machine over time',
        description:
          'Newest first. A gap between two prices means that the machine was withdrawn. 404 for a machine that is not in the published catalogue. Query parameters are ignored; `/v1/machines/search` finds machines.',
        answers: ({ price }) => z.array(price),
        example: [
          { price: MACHINE_EXAMPLE.price, from: '2026-03-01T04:17:02.114392Z', to: null },
          { price: 0.000099875, from: '2025-11-20T04:17:01.880127Z', to: '2026-03-01T04:17:02.114392Z' },
        ],
        extension: true,
      },
      read: ({ id }, { organizationId }) => catalogue.machinePrices(id, organizationId),
      shared: true,
    }),
  ];
}
