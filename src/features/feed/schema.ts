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

const change = (types: readonly string[], subject: z.ZodRawShape) =>
  z.strictObject({
    id: cursor('The cursor of this change'),
    at: instant('When the feed got it'),
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
        change(['cluster.deleted'], { slug: text('Slug of the deleted cluster') }),
        change(['catalogue.changed'], {}),
      ]),
    ),
    next: cursor('Cursor for the next request'),
    more: documented(z.boolean(), { description: 'True if there are more changes now' }),
  }),
);
