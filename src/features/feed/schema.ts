/** What `/v1/changes` answers, as a zod schema. */
import { z } from 'zod';
import { named } from '../../http/openapi-schemas.ts';
import {
  clusterSchema,
  documented,
  id,
  instant,
  machineWithFactsSchema,
  pricePerMinute,
  text,
} from '../../http/schemas.ts';
import { CURSOR_TEXT } from './cursor.ts';

const cursor = (description: string) => documented(z.string().regex(CURSOR_TEXT), { description });

/** A change of one of these types, with what it is about. */
const change = (types: readonly string[], subject: z.ZodRawShape) =>
  z.strictObject({
    id: cursor('The cursor of this change'),
    at: instant('When it was told'),
    type: z.enum(types),
    ...subject,
  });

export const changesSchema = named(
  'Changes',
  z.strictObject({
    changes: z.array(
      z.discriminatedUnion('type', [
        change(['machine.added', 'machine.changed', 'machine.sold_out', 'machine.restocked'], {
          machine: machineWithFactsSchema,
        }),
        change(['machine.repriced'], {
          machine: machineWithFactsSchema,
          before: pricePerMinute,
          after: pricePerMinute,
        }),
        change(['machine.withdrawn', 'machine.retired'], {
          machine_id: id('Machine id'),
          provider_id: id('Provider id'),
          region_id: id('Region id'),
        }),
        change(['cluster.created', 'cluster.changed'], { cluster: clusterSchema }),
        change(['cluster.deleted'], { slug: text('The slug that it had') }),
        change(['catalogue.changed'], {}),
      ]),
    ),
    next: cursor('Where to go on'),
    more: documented(z.boolean(), { description: 'There are more already' }),
  }),
);
