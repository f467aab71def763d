/** The form of the file that FLEETBOOK_CONFIG names; its JSON Schema and its documentation are made from it. */
import { z } from 'zod';
import { RULES } from '../sources/cluster-rules.ts';
import { TypedCredentials } from '../sources/credentials/types.ts';
import { limitsShape } from './guard-limits.ts';

const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, {
  error: 'must be the name of an environment variable',
});

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
  schedule: z.string().optional().describe("five cron fields, UTC; the adapter's own when absent"),
  options: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('what the adapter has to know besides, see docs/adapters.md'),
  limits: limitsShape.optional().describe('what a run may change without being held for an operator'),
});

const clusterShape = sourceShape.extend(RULES);

/** Tokens are named, never written there: `tokenEnv` is the variable that has it. */
export const fileShape = z.strictObject({
  $schema: z.string().optional().describe('where this JSON Schema lies, for editors'),
  catalogues: z.array(sourceShape).default([]).describe('sources of machines'),
  clusters: z.array(clusterShape).default([]).describe('sources of clusters'),
});

export type SourceEntry = z.infer<typeof sourceShape>;
export type ClusterEntry = z.infer<typeof clusterShape>;
export type SourcesFile = z.infer<typeof fileShape>;
