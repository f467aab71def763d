/** The schemas that `/openapi.json` has by name. */
import { changesSchema } from '../features/feed/schema.ts';
import {
  clusterSchema,
  exportSchema,
  machineSchema,
  priceSchema,
  problemSchema,
  providerSchema,
  type Schema,
} from './schemas.ts';

export const NAMED: ReadonlyMap<Schema, string> = new Map([
  [machineSchema, 'Machine'],
  [clusterSchema, 'Cluster'],
  [providerSchema, 'Provider'],
  [priceSchema, 'Price'],
  [exportSchema, 'Export'],
  [changesSchema, 'Changes'],
  [problemSchema, 'Problem'],
]);

export const reference = (schema: Schema): Schema => ({ $ref: `#/components/schemas/${NAMED.get(schema)}` });

/** What `/components/<kind>` has under these names. */
export function references(kind: string, names: readonly string[]): Schema {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/${kind}/${name}` }]));
}
