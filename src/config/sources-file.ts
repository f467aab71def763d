/** The schema of the file of FLEETBOOK_CONFIG. Its JSON Schema and documentation are generated from it. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { RULES } from '../sources/cluster-rules.ts';
import { TypedCredentials } from '../sources/credentials/types.ts';
import { problemText } from '../sources/schema/rows.ts';
import { didYouMean } from './did-you-mean.ts';
import { limitsShape } from './guard-limits.ts';

/** The largest `maxAge`: ten years in seconds. */
export const LONGEST_MAX_AGE = 3660 * 86_400;

export const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, {
  error: 'must be the name of an environment variable',
});

const sourceShape = z.strictObject({
  id: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be lower-case letters, digits and dashes')
    .describe('identifies the source in the database, in logs and in commands; never change it'),
  adapter: z.string().describe('adapter that reads the source, see docs/adapters.md'),
  url: z
    .string()
    .optional()
    .describe("URL (or path, if the adapter reads files); by default the provider's public one"),
  tokenEnv: variable.optional().describe('name of the variable that holds the token'),
  tokenCommand: z
    .array(z.string())
    .min(1)
    .refine(([program]) => program !== '', { error: 'must begin with a program' })
    .optional()
    .describe(
      'instead of tokenEnv: program and arguments of a command that prints the token; no shell reads them',
    ),
  credentials: TypedCredentials.optional().describe('instead of both: credentials that renew themselves'),
  apiKeyEnv: variable.optional().describe('name of the variable that holds an API key (adapter gcp)'),
  redirectsTo: z
    .array(
      z
        .string()
        .refine((text) => URL.canParse(text) && /^https?:/.test(text) && new URL(text).origin === text, {
          error: 'must be an origin such as https://downloads.example.com, without a path',
        }),
    )
    .optional()
    .describe('further origins that may receive redirected requests, without credentials; none by default'),
  schedule: z.string().optional().describe("five cron fields, UTC; by default the adapter's own"),
  maxAge: z
    .int()
    .min(1)
    .max(LONGEST_MAX_AGE)
    .optional()
    .describe(
      'largest age of its data in seconds before an alert opens; by default three intervals of the schedule',
    ),
  options: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('options of the adapter, see docs/adapters.md'),
  limits: limitsShape.optional().describe("changes that a run may make without an operator's approval"),
});

const clusterShape = sourceShape.extend(RULES);

/** The file contains no secrets, only names of their variables. */
export const coreShape = z.strictObject({
  $schema: z.string().optional().describe('address of this JSON Schema, for editors'),
  catalogues: z.array(sourceShape).default([]).describe('sources of machines'),
  clusters: z.array(clusterShape).default([]).describe('sources of clusters'),
});

export interface FileSection {
  readonly name: string;
  readonly shape: z.ZodType;
}

export function fileShape(sections: readonly FileSection[]) {
  return coreShape.extend(Object.fromEntries(sections.map(({ name, shape }) => [name, shape])));
}

export type SourceEntry = z.infer<typeof sourceShape>;
export type ClusterEntry = z.infer<typeof clusterShape>;
export interface SourcesFile extends Omit<z.infer<typeof coreShape>, '$schema'> {
  readonly sections: FileSections;
}
export type FileSections = Readonly<Record<string, unknown>>;

const NO_FILE: SourcesFile = { catalogues: [], clusters: [], sections: {} };

/** Reads the file of FLEETBOOK_CONFIG. It adds a line to `problems` for each problem of its form. */
export function readSourcesFile(
  path: string | undefined,
  sections: readonly FileSection[],
  problems: string[],
): SourcesFile {
  if (path === undefined) return NO_FILE;
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    problems.push(`FLEETBOOK_CONFIG must name a readable JSON file; ${path}: ${(error as Error).message}`);
    return NO_FILE;
  }
  const parsed = fileShape(sections).safeParse(content, { error: unknownSettings });
  for (const { path: at, message } of parsed.error?.issues ?? [])
    for (const line of message.split('\n'))
      problems.push(`${path}: ${at.join('.') || 'the file'}: ${problemText(line)}`);
  return validPart(content, sections);
}

/** Returns the valid entries, so that their other problems are reported as well. */
function validPart(content: unknown, sections: readonly FileSection[]): SourcesFile {
  const given = Object(content) as Record<string, unknown>;
  return {
    catalogues: validEntries(given.catalogues, sourceShape),
    clusters: validEntries(given.clusters, clusterShape),
    sections: Object.fromEntries(
      sections.map(({ name, shape }) => [name, shape.safeParse(given[name]).data]),
    ),
  };
}

function validEntries<Entry>(entries: unknown, shape: { strip(): z.ZodType<Entry> }): Entry[] {
  if (!Array.isArray(entries)) return [];
  // An unknown setting is reported above, and the entry is read without it.
  return entries.flatMap((entry) => shape.strip().safeParse(entry).data ?? []);
}

/** Returns a line for each unknown setting; undefined for any other problem, which has its own message. */
function unknownSettings(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code !== 'unrecognized_keys' || !(issue.inst instanceof z.ZodObject)) return undefined;
  const known = Object.keys(issue.inst.shape);
  return issue.keys
    .map((key) => `has no setting "${key}"${didYouMean(key, known) || '; leave it out'}`)
    .join('\n');
}
