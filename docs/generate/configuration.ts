/**
 * Writes docs/configuration.md and docs/fleetbook-config.schema.json, which are made from the form of the file that
 * FLEETBOOK_CONFIG names: part of `npm run docs`.
 */
import { writeFileSync } from 'node:fs';
import { z } from 'zod';
import { FEATURE_CONFIG } from '../../src/app/feature-settings.ts';
import { LIMITS } from '../../src/config/guard-limits.ts';
import { inPackage } from '../../src/config/package.ts';
import { coreShape, fileShape } from '../../src/config/sources-file.ts';
import { catalogueAdapters, clusterAdapters } from '../../src/sources/registry.ts';
import { descriptionOf } from '../../src/sources/schema/options.ts';
import type { SourceOptions } from '../../src/sources/source.ts';
import { DEFAULT_GUARD_LIMITS, type GuardLimits } from '../../src/sync/guard.ts';
import { row, table } from './markdown.ts';

export const SCHEMA_FILE = 'docs/fleetbook-config.schema.json';

type Json = { [key: string]: unknown };

interface Described {
  readonly id: string;
  readonly options?: SourceOptions;
}

/** The JSON Schema (draft 7, which editors know best) of the file; of each adapter with its own options. */
export function configSchema(): Json {
  const options = { io: 'input', target: 'draft-7' } as const;
  const schema = z.toJSONSchema(fileShape(FEATURE_CONFIG.sections), options) as Json;
  const lists = schema.properties as Record<'catalogues' | 'clusters', { items: Json }>;
  const adapters = (list: readonly Described[], items: Json) => {
    const properties = items.properties as Json;
    properties.adapter = { ...(properties.adapter as Json), enum: list.map(({ id }) => id) };
    items.allOf = list.map(({ id, options: shape }) => ({
      if: { properties: { adapter: { const: id } } },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: {
        properties: { options: shape === undefined ? false : withoutSchema(z.toJSONSchema(shape, options)) },
      },
    }));
  };
  adapters(catalogueAdapters.map(described), lists.catalogues.items);
  adapters(clusterAdapters.map(described), lists.clusters.items);
  return { title: 'Sources of Fleetbook', ...schema };
}

function described(adapter: { readonly id: string; readonly options?: SourceOptions }): Described {
  return adapter;
}

function withoutSchema({ $schema: _, ...schema }: Json): Json {
  return schema;
}

/** The schema's file, whole. */
export function schemaText(): string {
  return `${JSON.stringify(configSchema(), null, 2)}\n`;
}

/** The page of the documentation. */
export function configurationPage(): string {
  const { catalogues, clusters } = coreShape.shape;
  const fields = Object.entries(catalogues.def.innerType.element.shape).map(([name, field]) =>
    row([`\`${name}\``, descriptionOf(field), field.safeParse(undefined).success ? '' : 'yes']),
  );
  const limits = Object.entries(LIMITS).map(([name, { describe, unit }]) =>
    row([`\`${name}\``, describe, unit, `\`${DEFAULT_GUARD_LIMITS[name as keyof GuardLimits]}\``]),
  );
  return `# The file of sources

Made from the code; a test fails when this page is not what it says.

\`FLEETBOOK_CONFIG\` names a JSON file with sources: \`catalogues\`, ${descriptionOf(catalogues)}, and \`clusters\`,
${descriptionOf(clusters)}. Its JSON Schema is [fleetbook-config.schema.json](fleetbook-config.schema.json), which is part of the
package: an editor that is told by \`$schema\` completes and checks the file.

\`\`\`json
{
  "$schema": "./node_modules/fleetbook/${SCHEMA_FILE}",
  "catalogues": [
    { "id": "linode", "adapter": "linode", "schedule": "5 * * * *" },
    { "id": "hetzner-test", "adapter": "hetzner", "tokenEnv": "HETZNER_TEST_TOKEN",
      "limits": { "removedShare": 0.1, "smallCount": 0 } }
  ]
}
\`\`\`

Wrong fields and values stop the start, by their path, all of them at once.

## An entry

| field | meaning | must be given |
|---|---|---|
${fields.join('\n')}

Credentials are explained with [the adapters](adapters.md#credentials); what sources of clusters have besides stands
[there](adapters.md#clusters) as well.

## File and environment

An entry whose \`id\` is that of its \`adapter\`, such as \`hetzner\`, takes the place of the source that the environment would
configure (\`HETZNER_TOKEN\`, \`HETZNER_URL\`): \`HETZNER_TOKEN\` is its token, unless it says where else that is. The same goes
for the id \`clusters\` with the adapter \`json\`. Whatever both of them say, such as \`HETZNER_URL\` or \`HETZNER_SCHEDULE\`, is a
contradiction and stops the start. A variable that any entry names, by \`tokenEnv\` for one, makes no source by itself.

## Limits of the guards

A run that would change more than this is held for an operator (\`fleetbook hold list\`), and readers keep what they have.
\`limits\` of an entry changes them for that source. A share of 0.2 is a fifth, of 0 none, of 1 all.

${table(['limit', 'meaning', 'unit', 'default'], limits)}

A share counts only where more than \`smallCount\` rows are concerned, but for \`incompleteShare\`. \`rejectedShare\` and
\`duplicateShare\` count rows as the source lists them, the others machines or clusters as they are stored. A batch
without one usable row is always held.
`;
}

if (import.meta.main) {
  writeFileSync(inPackage('docs/configuration.md'), configurationPage());
  writeFileSync(inPackage(SCHEMA_FILE), schemaText());
}
