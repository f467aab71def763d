import { z } from 'zod';
import { type Operation, operation } from '../../http/operation.ts';
import { cursorParameter } from '../../http/protocol/page-cursor.ts';
import {
  countParameter,
  decimalParameter,
  idParameter,
  invalidParameter,
  listParameter,
  parameter,
  wordParameter,
} from '../../http/protocol/parameters.ts';
import type { DatabasesReader } from './databases-reader.ts';
import { type DatabaseDocument, databaseSchema, databasesSchema } from './schema.ts';

const EXAMPLE: DatabaseDocument = {
  id: 812,
  engine: 'postgresql',
  name: 'g6-dedicated-2',
  nodes: 3,
  cpu: 2,
  ram: 4,
  ram_unit: 'Binary',
  storage: 85.899,
  price: 0.004452054794520548,
  price_per_month: 195,
  provider: { id: 6, name: 'Linode' },
  region: { id: 31, name: 'Frankfurt, DE', code: 'eu-central' },
};

const ids = (description: string, example: number) =>
  listParameter(idParameter({ description, example, listedBy: '/v1/providers' }), 100).optional();
const engine = parameter(z.string().regex(/^[a-z0-9_-]{1,40}$/), {
  description: 'Engines',
  example: 'postgresql',
  expected: 'a name in lower case, e.g. postgresql',
});
const cursor = cursorParameter(100, 'ui30kDosxSPhW1E8cj8AAAAAAGCJQA');

export function databaseOperations(reader: DatabasesReader): Operation[] {
  return [
    operation({
      path: '/v1/databases',
      scope: 'machines:read',
      parameters: {
        provider: ids('Providers; `/v1/providers` lists them', 6),
        region: ids('Regions; `/v1/providers` lists them', 31),
        engine: listParameter(engine, 20).optional(),
        min_cpu: countParameter('Least number of virtual CPUs of a node', [1, 100_000], 2).optional(),
        min_ram: decimalParameter(
          'Least memory of a node, as sold: 8 GB and 8 GiB are both 8',
          3,
          '4',
        ).optional(),
        sort: wordParameter(
          'The cheapest first, or the dearest with `-`; plans at one price by id',
          ['price', '-price'],
          'price',
        ).default('price'),
        limit: countParameter('Most plans of the answer', [1, 500], 50).default(50),
        cursor,
      },
      isStrict: true,
      doc: {
        id: 'listDatabases',
        summary: 'Plans of managed databases by filters',
        description:
          'Plans are no machines: no other operation lists them. A plan whose cpu or memory is unknown does not meet `min_cpu` or `min_ram`. If no plan meets the filters, the list is empty. After a publication between two pages the next page continues behind its place in the order.',
        answers: databasesSchema,
        example: { databases: [EXAMPLE], next: null },
        extension: true,
      },
      read: async ({ provider, region, engine: engines, min_cpu: minCpu, min_ram: minRam, ...page }) => {
        const found = await reader.list({
          filters: {
            providers: provider,
            regions: region,
            engines,
            minCpu,
            minRam: minRam === undefined ? undefined : Number(minRam),
          },
          isDescending: page.sort === '-price',
          limit: page.limit,
          cursor: page.cursor,
        });
        return found ?? invalidParameter('query', 'cursor', cursor, page.cursor);
      },
      shared: true,
    }),
    operation({
      path: '/v1/databases/{id}',
      scope: 'machines:read',
      parameters: {
        id: idParameter({ description: 'Plan id', example: EXAMPLE.id, listedBy: '/v1/databases' }),
        history: wordParameter('`true` adds the history of the price', ['false', 'true'], 'true').default(
          'false',
        ),
      },
      isStrict: true,
      doc: {
        id: 'getDatabase',
        summary: 'One plan of a managed database',
        description: '404 for a plan that its provider does not state any more.',
        answers: databaseSchema,
        example: {
          ...EXAMPLE,
          history: [{ price: EXAMPLE.price, from: '2026-03-01T04:17:02.114310Z', to: null }],
        },
        extension: true,
      },
      read: ({ id, history }) => reader.one(id, history === 'true'),
      shared: true,
    }),
  ];
}
