/** Converts zod schemas to JSON Schemas of `/openapi.json`. Named schemas become components. */
import { z } from 'zod';

export type Schema = Readonly<Record<string, unknown>>;

const NAMES = z.registry<{ readonly name: string }>();

export function named<T extends z.ZodType>(name: string, schema: T): T {
  NAMES.add(schema, { name });
  return schema;
}

/** @param components receives the named schemas; others refer to them */
export function schemaWriter(components: Record<string, Schema>): (schema: z.ZodType) => Schema {
  function write(schema: z.core.$ZodType, isDefinition = false): Schema {
    const { $schema: _, ...json } = z.toJSONSchema(schema, {
      io: 'input',
      override({ zodSchema, jsonSchema }) {
        const name = NAMES.get(zodSchema)?.name;
        // Keys of JSON objects are always strings.
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

export function references(kind: string, names: readonly string[]): Schema {
  return Object.fromEntries(names.map((name) => [name, reference(kind, name)]));
}
