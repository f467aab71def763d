import type { Environment } from '../config/config.ts';
import type { TracedProgram, Tracing } from './feature.ts';
import { FEATURES } from './features.ts';

/** The tracing of this process. Undefined if no feature traces or the environment does not configure it. */
export async function openTracing(env: Environment, program: TracedProgram): Promise<Tracing | undefined> {
  for (const { trace } of FEATURES) {
    const tracing = await trace?.(env, program);
    if (tracing) return tracing;
  }
  return undefined;
}
