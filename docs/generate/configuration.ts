/** Writes the generated sections of docs/configuration.md, and the JSON Schema of the file of sources. Part of `npm run docs`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { FEATURE_CONFIG } from '../../src/app/feature-config.ts';
import { ALL_SETTINGS } from '../../src/app/features.ts';
import { LIMITS } from '../../src/config/guard-limits.ts';
import { inPackage } from '../../src/config/package.ts';
import { coreShape, fileShape } from '../../src/config/sources-file.ts';
import { catalogueAdapters, clusterAdapters } from '../../src/sources/registry.ts';
import { descriptionOf } from '../../src/sources/schema/options.ts';
import type { SourceOptions } from '../../src/sources/source.ts';
import { DEFAULT_GUARD_LIMITS, type GuardLimits } from '../../src/sync/guards.ts';
import { row, table } from './markdown.ts';

export const PAGE = 'docs/configuration.md';
export const SCHEMA_FILE = 'docs/fleetbook-config.schema.json';

type Json = { [key: string]: unknown };

interface Described {
  readonly id: string;
  readonly options?: SourceOptions;
}

/** Returns the JSON Schema of the file, with the options of each adapter. Editors support draft 7 best. */
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

/** Returns the text of the schema's file. */
export function schemaText(): string {
  return `${JSON.stringify(configSchema(), null, 2)}\n`;
}

/** Returns the page with its generated sections replaced. */
export function updatedPage(page: string): string {
  const withSettings = replaced(page, 'settings', 'settings', settingsTable());
  return replaced(withSettings, 'file of sources', 'the file of sources', fileOfSources());
}

function replaced(page: string, start: string, end: string, text: string): string {
  const first = `<!-- ${start}: made by npm run docs -->`;
  const from = page.indexOf(first);
  const to = page.indexOf(`<!-- end of ${end} -->`);
  if (from < 0 || to < from) throw new Error(`${PAGE} must contain ${first} and its end`);
  return `${page.slice(0, from)}${first}\n${text}\n${page.slice(to)}`;
}

function settingsTable(): string {
  const rows = Object.entries(ALL_SETTINGS).map(([name, { describe, fallback }]) =>
    row([`\`${name}\``, describe, fallback === undefined ? '' : `\`${fallback}\``]),
  );
  return table(['setting', 'meaning', 'default'], rows);
}

function fileOfSources(): string {
  const { catalogues, clusters } = coreShape.shape;
  const fields = Object.entries(catalogues.def.innerType.element.shape).map(([name, field]) =>
    row([`\`${name}\``, descriptionOf(field), field.safeParse(undefined).success ? '' : 'yes']),
  );
  const limits = Object.entries(LIMITS).map(([name, { describe, unit }]) =>
    row([`\`${name}\``, describe, unit, `\`${DEFAULT_GUARD_LIMITS[name as keyof GuardLimits]}\``]),
  );
  return `\`FLEETBOOK_CONFIG\` names a JSON file with sources: \`catalogues\`, ${descriptionOf(catalogues)}, and \`clusters\`,
${descriptionOf(clusters)}. Its JSON Schema, [fleetbook-config.schema.json](fleetbook-config.schema.json), is part of the package. With \`$schema\`
an editor completes and checks the file.

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

Wrong fields and values stop the start. The message lists all of them with their paths.

### An entry

| field | meaning | required |
|---|---|---|
${fields.join('\n')}

The page of adapters explains [credentials](adapters.md#credentials) and the additional fields of [clusters](adapters.md#clusters).

### File and environment

An entry whose \`id\` equals its \`adapter\`, such as \`hetzner\`, replaces the source that the environment configures. \`HETZNER_TOKEN\` is its
token, unless the entry names another one. The same applies to the id \`clusters\` with the adapter \`json\`. If the environment and the entry set
the same value, such as \`HETZNER_URL\` or \`HETZNER_SCHEDULE\`, the start stops. A variable that an entry names, for example in \`tokenEnv\`,
does not configure another source.

### Limits of the guards

A run beyond a limit is held for an operator (\`fleetbook hold list\`), and readers keep the last good data. \`limits\` of an entry sets the limits of
that source. A share of 0.2 is a fifth, 1 is everything. [Guards](guards.md) explains each guard.

${table(['limit', 'meaning', 'unit', 'default'], limits)}

Except for \`incompleteShare\`, a share counts only if it concerns more than \`smallCount\` rows. \`rejectedShare\` and \`duplicateShare\` count rows
of the source; the others count stored machines or clusters. A batch without a usable row is always held.`;
}

if (import.meta.main) {
  const path = inPackage(PAGE);
  writeFileSync(path, updatedPage(readFileSync(path, 'utf8')));
  writeFileSync(inPackage(SCHEMA_FILE), schemaText());
}
