import type { Environment } from '../../config/source-config.ts';
import { CommandFailure, failureMessage } from '../terminal/failure.ts';
import type { Json } from '../terminal/options.ts';
import { print, printAside, printJson } from '../terminal/output.ts';

export interface SourceResult {
  readonly json: object;
  readonly text: string;
  /** Set if the command ran and an operator has to act. */
  readonly failure?: Error | undefined;
}

/**
 * Acts on each source in turn. A failure of one is printed and does not stop the others. `--json` prints one object for
 * one source, and an array for several.
 * @throws the failure of a single source; CommandFailure that names the failed ones of several sources
 */
export async function eachSource(
  env: Environment,
  ids: readonly string[],
  { json }: Json,
  act: (id: string) => Promise<SourceResult>,
): Promise<void> {
  const each = [...new Set(ids)];
  const [only] = each;
  if (only !== undefined && each.length === 1) {
    const result = await act(only);
    if (json) printJson(result.json);
    if (result.failure) throw result.failure;
    if (!json) print(result.text);
    return;
  }
  const results: object[] = [];
  const failed: string[] = [];
  for (const source of each) {
    const result = await act(source).catch((failure: unknown) => ({ json: { source }, text: '', failure }));
    if (result.failure === undefined) {
      results.push(result.json);
      if (!json) print(result.text);
      continue;
    }
    const error = failureMessage(result.failure, env.DATABASE_URL);
    results.push({ ...result.json, error });
    failed.push(source);
    for (const line of error.split('\n')) printAside(`fleetbook: ${line}`);
  }
  if (json) printJson(results);
  if (failed.length > 0)
    throw new CommandFailure(`${failed.length} of ${each.length} sources failed: ${failed.join(', ')}`);
}
