import { z } from 'zod';
import type { SourceOptions } from '../source.ts';
import { environmentKey } from './environment-key.ts';
import { problemText } from './problems.ts';

export { environmentKey } from './environment-key.ts';

/** A source's options as its adapter's schema has read them. */
export type ReadOptions = Readonly<Record<string, string | undefined>>;

/** The options that the environment gives to an adapter's default source. */
export function optionsInEnvironment(
  adapterId: string,
  schema: SourceOptions,
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const given: Record<string, string> = {};
  for (const name of Object.keys(schema.shape)) {
    const value = env[environmentKey(adapterId, name)];
    if (value) given[name] = value;
  }
  return given;
}

/**
 * Reads a source's options.
 * @param nameOf how the operator knows an option, e.g. `OPENSTACK_REGION`; `''` is all of them
 * @returns the options, or everything that is wrong with them: which one, its problem and what it means
 */
export function readOptions(
  schema: SourceOptions,
  given: unknown,
  nameOf: (option: string) => string,
): { options: ReadOptions; problems: readonly string[] } {
  const parsed = schema.safeParse(given);
  if (parsed.success) return { options: parsed.data, problems: [] };
  const problems = parsed.error.issues.map((issue) => {
    const [option] = issue.path;
    const found = Object.entries(schema.shape).find(([name]) => name === option);
    if (found !== undefined)
      return `${nameOf(found[0])} ${problemText(issue.message)} (${descriptionOf(found[1])})`;
    return `${nameOf('')}: ${problemText(issue.message)}; known are ${Object.keys(schema.shape).join(', ')}`;
  });
  return { options: {}, problems };
}

/** What a schema says that its field is. */
export function descriptionOf(field: z.core.$ZodType): string {
  return z.globalRegistry.get(field)?.description ?? '';
}
