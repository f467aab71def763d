import { z } from 'zod';
import { named } from '../../http/openapi-schemas.ts';
import { cursorParameter } from '../../http/protocol/page-cursor.ts';
import {
  countParameter,
  decimalParameter,
  idParameter,
  listParameter,
  parameter,
  type Values,
  wordParameter,
} from '../../http/protocol/parameters.ts';
import { placeParameters } from '../../http/protocol/place-parameters.ts';
import { count, documented, double, id, instant, orNull, pricePerMinute, text } from '../../http/schemas.ts';

const ids = (description: string, example: number) =>
  listParameter(idParameter({ description, example, listedBy: '/v1/providers' }), 100).optional();
const engine = parameter(z.string().regex(/^[a-z0-9_-]{1,40}$/), {
  description: 'Engines',
  example: 'postgresql',
  expected: 'a name in lower case, e.g. postgresql',
});

export const plansParameters = {
  provider: ids('Providers; `/v1/providers` lists them', 6),
  region: ids('Regions; `/v1/providers` lists them', 31),
  ...placeParameters,
  engine: listParameter(engine, 20).optional(),
  min_cpu: countParameter('Least number of virtual CPUs of a node', [1, 100_000], 2).optional(),
  min_ram: decimalParameter('Least memory of a node, as sold: 8 GB and 8 GiB are both 8', 3, '4').optional(),
  sort: wordParameter(
    'The cheapest first, or the dearest with `-`; plans at one price by id',
    ['price', '-price'],
    'price',
  ).default('price'),
  limit: countParameter('Most plans of the answer', [1, 500], 50).default(50),
  cursor: cursorParameter(100, 'ui30kDosxSPhW1E8cj8AAAAAAGCJQA'),
};
export type PlansQuestion = Values<typeof plansParameters>;

const plan = named(
  'DatabasePlan',
  z.strictObject({
    id: id('Plan id, stable'),
    engine: text('The database, e.g. `postgresql`'),
    name: text('Name at the provider'),
    nodes: orNull(
      count('Number of nodes'),
      'Nodes that the price includes. Null: the price is that of one node, and the provider does not state how many a plan has',
    ),
    cpu: orNull(count('Number'), 'Virtual CPUs of one node; null: unknown'),
    ram: orNull(double(), 'Memory of one node, in `ram_unit`; null: unknown'),
    ram_unit: orNull(z.enum(['Binary', 'Decimal']), 'Binary: GiB; Decimal: GB; null: the memory is unknown'),
    storage: orNull(double(), 'GB of storage of one node that the price includes; null: unknown'),
    price: pricePerMinute,
    price_per_month: double('Price of 730 hours'),
    provider: z.strictObject({ id: id('Provider id'), name: text('Provider name') }),
    region: z.strictObject({
      id: id('Region id'),
      name: text('Region name'),
      code: text('Region code of the provider'),
    }),
  }),
);

export const databasesSchema = named(
  'DatabasePage',
  z.strictObject({
    databases: z.array(plan),
    next: orNull(z.string(), 'Cursor of the next page; null on the last page'),
  }),
);

const period = z.strictObject({
  price: orNull(double(), 'Price per minute; null: no exchange rate was known'),
  from: instant('First seen'),
  to: orNull(documented(z.string(), { format: 'date-time' }), 'End; null for the current price'),
});

export const databaseSchema = named(
  'DatabaseWithHistory',
  plan.extend({
    history: documented(z.array(period).exactOptional(), {
      description: 'With `history=true`: the newest first, at most 1000 prices',
    }),
  }),
);

export type DatabaseDocument = z.output<typeof plan>;
export type DatabasesDocument = z.output<typeof databasesSchema>;
export type DatabaseWithHistory = z.output<typeof databaseSchema>;
