/** The form of the file that FLEETBOOK_CONFIG names; its JSON Schema and its documentation are made from it. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { didYouMean } from '../lib/did-you-mean.ts';
import { RULES } from '../sources/cluster-rules.ts';
import { TypedCredentials } from '../sources/credentials/types.ts';
import { problemText } from '../sources/schema/problems.ts';
import { limitsShape } from './guard-limits.ts';
import { LONGEST_MAX_AGE } from './max-age.ts';
import { variable } from './variable-name.ts';

const sourceShape = z.strictObject({
  id: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be lower-case letters, digits and dashes')
    .describe('names the source in the database, in logs and in commands; keep it for good'),
  adapter: z.string().describe('what reads the source, see docs/adapters.md'),
  url: z
    .string()
    .optional()
    .describe("URL (or path, where the adapter reads files); the provider's public one when absent"),
  tokenEnv: variable.optional().describe('name of the variable that holds the token'),
  tokenCommand: z
    .array(z.string())
    .min(1)
    .refine(([program]) => program !== '', { error: 'must begin with a program' })
    .optional()
    .describe('in its place: program and arguments of a command that prints the token; no shell reads them'),
  credentials: TypedCredentials.optional().describe('in their place: credentials that renew themselves'),
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
    .describe(
      'origins to which requests without credentials may be redirected; only the own one when absent',
    ),
  schedule: z.string().optional().describe("five cron fields, UTC; the adapter's own when absent"),
  maxAge: z
    .int()
    .min(1)
    .max(LONGEST_MAX_AGE)
    .optional()
    .describe(
      'seconds that its data may be old before alerts say so; three intervals of the schedule when absent',
    ),
  options: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('what the adapter has to know besides, see docs/adapters.md'),
  limits: limitsShape.optional().describe('what a run may change without being held for an operator'),
});

const clusterShape = sourceShape.extend(RULES);

/** Tokens are named, never written there: `tokenEnv` is the variable that has it. */
export const coreShape = z.strictObject({
  $schema: z.string().optional().describe('where this JSON Schema lies, for editors'),
  catalogues: z.array(sourceShape).default([]).describe('sources of machines'),
  clusters: z.array(clusterShape).default([]).describe('sources of clusters'),
});

/** A section that a feature adds to the file. */
export interface FileSection {
  readonly name: string;
  /** Accepts a file without the section as well. */
  readonly shape: z.ZodType;
}

/** The shape of the whole file. */
export function fileShape(sections: readonly FileSection[]) {
  return coreShape.extend(Object.fromEntries(sections.map(({ name, shape }) => [name, shape])));
}

export type SourceEntry = z.infer<typeof sourceShape>;
export type ClusterEntry = z.infer<typeof clusterShape>;
export interface SourcesFile extends Omit<z.infer<typeof coreShape>, '$schema'> {
  /** What the file gives features, by the names of sections. */
  readonly sections: FileSections;
}
export type FileSections = Readonly<Record<string, unknown>>;

const NO_FILE: SourcesFile = { catalogues: [], clusters: [], sections: {} };

/** Reads the file that FLEETBOOK_CONFIG names. Adds a line to `problems` for everything that is wrong with its form. */
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
  const shape = fileShape(sections);
  const parsed = shape.safeParse(content);
  for (const issue of parsed.error?.issues ?? [])
    problems.push(...problemsIn(issue, shape).map((problem) => `${path}: ${problem}`));
  return soundPart(content, sections);
}

/** The entries that are sound by themselves, so that their other problems are reported as well. */
function soundPart(content: unknown, sections: readonly FileSection[]): SourcesFile {
  const given = Object(content) as Record<string, unknown>;
  return {
    catalogues: soundEntries(given.catalogues, sourceShape),
    clusters: soundEntries(given.clusters, clusterShape),
    sections: Object.fromEntries(
      sections.map(({ name, shape }) => [name, shape.safeParse(given[name]).data]),
    ),
  };
}

function soundEntries<Entry>(entries: unknown, shape: { strip(): z.ZodType<Entry> }): Entry[] {
  if (!Array.isArray(entries)) return [];
  // The problem of an unknown setting is reported above; the entry is read without it.
  return entries.flatMap((entry) => shape.strip().safeParse(entry).data ?? []);
}

/** One line for each unknown setting, or one for any other problem. */
function problemsIn(issue: z.core.$ZodIssue, shape: z.ZodType): string[] {
  const where = issue.path.join('.') || 'the file';
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map(
      (key) =>
        `${where}: has no setting "${key}"${didYouMean(key, settingsAt(shape, issue.path)) || '; leave it out'}`,
    );
  return [`${where}: ${problemText(issue.message)}`];
}

/** The names of the settings that the object at a path of the file may have. */
function settingsAt(shape: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  const [first, ...rest] = path;
  if (shape instanceof z.ZodDefault || shape instanceof z.ZodOptional)
    return settingsAt(shape.def.innerType, path);
  if (shape instanceof z.ZodUnion || shape instanceof z.ZodDiscriminatedUnion)
    return shape.options.flatMap((option) => settingsAt(option, path));
  if (shape instanceof z.ZodArray) return settingsAt(shape.element, rest);
  if (shape instanceof z.ZodRecord) return settingsAt(shape.def.valueType, rest);
  if (!(shape instanceof z.ZodObject)) return [];
  if (first === undefined) return Object.keys(shape.shape);
  const inner: z.core.$ZodType | undefined = shape.shape[String(first)];
  return inner === undefined ? [] : settingsAt(inner, rest);
}
