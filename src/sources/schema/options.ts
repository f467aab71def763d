import { z } from 'zod';
import type { SourceOptions } from '../source.ts';
import { problemText } from './rows.ts';

export type ReadOptions = Readonly<Record<string, string | undefined>>;

/** Returns the variable of an adapter: `price-list`, `regionName` → `PRICE_LIST_REGION_NAME`. */
export function environmentKey(adapterId: string, name: string): string {
  const words = name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`);
  return `${adapterId}_${words}`.replaceAll('-', '_').toUpperCase();
}

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

/** Returns the options, or every problem. `nameOf` returns the operator's name of an option; `''` means all options. */
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

export function descriptionOf(field: z.core.$ZodType): string {
  return z.globalRegistry.get(field)?.description ?? '';
}
