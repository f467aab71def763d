import { z } from 'zod';
import type { CatalogueReader } from '../../snapshot/document/answer.ts';
import type { ProviderListing } from '../../snapshot/document/build.ts';
import { type Operation, operation } from '../operation.ts';
import { providerSchema } from '../schemas.ts';

const EXAMPLE: ProviderListing = {
  id: 5,
  name: 'Hetzner',
  regions: [{ id: 3, name: 'Falkenstein', code: 'fsn1' }],
};

export function providerOperations(catalogue: CatalogueReader): Operation[] {
  return [
    operation({
      path: '/v1/providers',
      scope: 'machines:read',
      parameters: {},
      doc: {
        id: 'listProviders',
        summary: 'Providers and their regions',
        description: 'Lists the ids for `/v1/machines`.',
        answers: z.array(providerSchema),
        example: [EXAMPLE],
        extension: true,
      },
      read: () => catalogue.providers(),
      shared: true,
    }),
  ];
}
