/** The stock of a machine over time: the route, and its answer from PostgreSQL. */
import { z } from 'zod';
import type { ReaderContext, ReaderPart } from '../../app/feature.ts';
import { databaseOn } from '../../db/connection/client.ts';
import { readStock, stockPeriods } from '../../db/stock.ts';
import { availableShare } from '../../domain/stock.ts';
import type { ApiFeature } from '../../http/app.ts';
import { named } from '../../http/openapi-schemas.ts';
import { type Operation, operation } from '../../http/operation.ts';
import { idParameter } from '../../http/protocol/parameters.ts';
import { MACHINE_EXAMPLE } from '../../http/routes/machines.ts';
import { availableShareSchema, documented, id, instant, orNull, text } from '../../http/schemas.ts';
import { findMachine, type SearchState } from '../../market/market.ts';
import { type Answer, type MaybePromise, whenThere } from '../../snapshot/document/answer.ts';
import { jsonBody } from '../../snapshot/document/body.ts';
import type { Documents } from '../../snapshot/read/documents.ts';

const availabilitySchema = named(
  'MachineAvailability',
  z.strictObject({
    id: id('Machine id'),
    name: text('Name at the provider'),
    provider: z.strictObject({ id: id('Provider id'), name: text('Provider name') }),
    region: z.strictObject({
      id: id('Region id'),
      name: text('Region name'),
      code: text('Region code of the provider'),
    }),
    available: documented(z.boolean(), { description: 'False: sold out' }),
    available_share: availableShareSchema,
    history: documented(
      z.array(
        z.strictObject({
          available: documented(z.boolean(), { description: 'False: sold out' }),
          from: instant('When it began'),
          to: orNull(documented(z.string(), { format: 'date-time' }), 'When it ended; null: it lasts'),
        }),
      ),
      {
        description:
          'Newest first, at most the newest 1,000 changes. A gap between two periods means that the machine was withdrawn or retired',
      },
    ),
  }),
);

export type AvailabilityDocument = z.output<typeof availabilitySchema>;

const { id: MACHINE, name, provider, region } = MACHINE_EXAMPLE;
const RESTOCKED = '2026-03-01T04:17:02.114392Z';
const SOLD_OUT = '2026-02-27T09:02:01.880127Z';
const EXAMPLE: AvailabilityDocument = {
  ...{ id: MACHINE, name, provider, region },
  available: true,
  available_share: 0.94,
  history: [
    { available: true, from: RESTOCKED, to: null },
    { available: false, from: SOLD_OUT, to: RESTOCKED },
    { available: true, from: '2025-11-20T04:17:01.880127Z', to: SOLD_OUT },
  ],
};

export interface AvailabilityOptions {
  readonly documents: Pick<Documents, 'postgres'>;
  readonly catalogue: { get(): MaybePromise<SearchState> };
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

/** Returns undefined for a machine that is in no list. May reject with `Unavailable`. */
function readAvailability(
  { documents, catalogue, now = Date.now }: AvailabilityOptions,
  machineId: number,
  organizationId: number,
): MaybePromise<Answer | undefined> {
  return whenThere(catalogue.get(), (state) => {
    const machine = findMachine(state.index, machineId);
    if (!machine) return undefined;
    const { id, name, place, region } = machine;
    const reading = documents.postgres((client) => readStock(databaseOn(client), machineId), {
      // The history must have the state of the machine's list.
      check: (found) => found !== undefined && found.version >= region.version,
      organizationId,
    });
    return reading.then((stored) => {
      if (!stored) return undefined;
      const isAvailable = stored.stock === 'available';
      const document: AvailabilityDocument = {
        ...{ id, name, provider: region.provider, region: region.region },
        available: isAvailable,
        available_share: availableShare(stored.times ?? [], isAvailable, now()),
        history: stockPeriods(stored).map(({ stock, from, to }) => ({
          ...{ available: stock === 'available', from, to },
        })),
      };
      return {
        body: jsonBody(document),
        tier: 'postgres',
        asOf: state.asOf([place]),
        currency: region.currency,
      };
    });
  });
}

export const availabilityApi =
  (options: AvailabilityOptions): ApiFeature =>
  () => ({ operations: [availabilityOperation(options)] });

function availabilityOperation(options: AvailabilityOptions): Operation {
  return operation({
    path: '/v1/machines/{id}/availability',
    scope: 'machines:read',
    parameters: { id: idParameter({ description: 'Machine id', example: MACHINE }) },
    isStrict: true,
    doc: {
      id: 'listMachineAvailability',
      summary: 'When a machine could be ordered, and when it was sold out',
      description:
        'Newest first. 404 for a machine that `/v1/machines/search` with `available=all` does not find.',
      answers: () => availabilitySchema,
      example: EXAMPLE,
      extension: true,
    },
    read: (values, { organizationId }) => readAvailability(options, values.id, organizationId),
    shared: true,
  });
}

export const openAvailability = ({ documents, market: { catalogue } }: ReaderContext): ReaderPart => ({
  api: availabilityApi({ documents, catalogue }),
});
