import type { ReaderContext, ReaderPart } from '../../app/feature.ts';
import type { ApiFeature } from '../../http/app.ts';
import { type Operation, operation } from '../../http/operation.ts';
import { idParameter, invalidParameter, wordParameter } from '../../http/protocol/parameters.ts';
import { type DatabaseAnswers, type DatabaseAnswersOptions, databaseAnswers } from './answers.ts';
import { type DatabaseDocument, databaseSchema, databasesSchema, plansParameters } from './schema.ts';

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

export const databasesApi =
  (options: DatabaseAnswersOptions): ApiFeature =>
  () => ({ operations: databaseOperations(databaseAnswers(options)) });

export function databaseOperations(answers: DatabaseAnswers): Operation[] {
  return [
    operation({
      path: '/v1/databases',
      scope: 'machines:read',
      parameters: plansParameters,
      isStrict: true,
      doc: {
        id: 'listDatabases',
        summary: 'Plans of managed databases by filters',
        description:
          'Plans are no machines: no other operation lists them. A plan whose cpu or memory is unknown does not meet `min_cpu` or `min_ram`. If no plan meets the filters, the list is empty. After a publication between two pages the next page continues behind its place in the order.',
        answers: () => databasesSchema,
        example: { databases: [EXAMPLE], next: null },
        extension: true,
      },
      read: async (question) =>
        (await answers.list(question)) ??
        invalidParameter('query', 'cursor', plansParameters.cursor, question.cursor),
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
        answers: () => databaseSchema,
        example: {
          ...EXAMPLE,
          history: [{ price: EXAMPLE.price, from: '2026-03-01T04:17:02.114310Z', to: null }],
        },
        extension: true,
      },
      read: ({ id, history }, { organizationId }) => answers.one(id, history === 'true', organizationId),
      shared: true,
    }),
  ];
}

export const readDatabasePlans = ({ documents, market: { catalogue } }: ReaderContext): ReaderPart => ({
  api: databasesApi({ documents, catalogue }),
});
