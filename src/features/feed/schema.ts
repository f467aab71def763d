/** What `/v1/changes` answers, as JSON Schema. */

import { clusterSchema, machineWithFactsSchema, pricePerMinute, type Schema } from '../../http/schemas.ts';
import { CURSOR_TEXT } from './cursor.ts';

const text = (description: string): Schema => ({ type: 'string', description });
const cursor = (description: string): Schema => ({
  type: 'string',
  pattern: CURSOR_TEXT.source,
  description,
});

/** A change of one of these types, with what it is about. */
function change(types: readonly string[], subject: Readonly<Record<string, Schema>>): Schema {
  const all = {
    id: cursor('The cursor of this change'),
    at: { type: 'string', format: 'date-time', description: 'When it was told' },
    type: { type: 'string', enum: types },
    ...subject,
  };
  return { type: 'object', required: Object.keys(all), additionalProperties: false, properties: all };
}

const id = (description: string): Schema => ({ type: 'integer', format: 'int32', minimum: 1, description });

export const changesSchema: Schema = {
  type: 'object',
  required: ['changes', 'next', 'more'],
  additionalProperties: false,
  properties: {
    changes: {
      type: 'array',
      items: {
        oneOf: [
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
        ],
      },
    },
    next: cursor('Where to go on'),
    more: { type: 'boolean', description: 'There are more already' },
  },
};
