/** JSON Schemas of `/openapi.json`, made of zod schemas. Those with a name are components. */
import { z } from 'zod';

/** Part of `/openapi.json`. */
export type Schema = Readonly<Record<string, unknown>>;

const NAMES = z.registry<{ readonly name: string }>();

/** Gives the schema this name in `/openapi.json`. */
export function named<T extends z.ZodType>(name: string, schema: T): T {
  NAMES.add(schema, { name });
  return schema;
}

/**
 * Writes schemas for a document.
 * @param components receives the schemas that have a name; the others refer to them
 */
export function schemaWriter(components: Record<string, Schema>): (schema: z.ZodType) => Schema {
  function write(schema: z.core.$ZodType, isDefinition = false): Schema {
    const { $schema: _, ...json } = z.toJSONSchema(schema, {
      io: 'input',
      override({ zodSchema, jsonSchema }) {
        const name = NAMES.get(zodSchema)?.name;
        // Keys of JSON are texts.
        delete jsonSchema.propertyNames;
        if (name === undefined || (isDefinition && schema === zodSchema)) return;
        for (const key of Object.keys(jsonSchema)) delete jsonSchema[key];
        jsonSchema.$ref = reference('schemas', name).$ref;
        components[name] ??= write(zodSchema, true);
      },
    });
    return json;
  }
  return (schema) => write(schema);
}

export const reference = (kind: string, name: string) => ({ $ref: `#/components/${kind}/${name}` });

/** What `/components/<kind>` has under these names. */
export function references(kind: string, names: readonly string[]): Schema {
  return Object.fromEntries(names.map((name) => [name, reference(kind, name)]));
}
