/** Breaks the product in one way at a time. The oracle must find each defect. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { MUTATIONS } from './mutations.ts';

const MAIN = new URL('./main.ts', import.meta.url).pathname;
const MUTATE = new URL('./mutate.ts', import.meta.url).href;

export interface Found {
  readonly mutation: string;
  /** The failed seed and its error; undefined if none failed. */
  readonly by: { readonly seed: number; readonly problem: string } | undefined;
}

/**
 * @param seed of the first history
 * @param histories most histories for each defect
 * @param wanted names of the defects; all unless given
 */
export async function* selfTest(
  seed: number,
  histories: number,
  wanted: readonly string[] | undefined,
): AsyncGenerator<Found> {
  for (const { name, having } of MUTATIONS) {
    if (wanted && !wanted.includes(name)) continue;
    const args = ['--seed', String(seed), '--histories', String(histories), '--shrink', '0', '--json'];
    if (having) args.push('--having', having.join(','));
    const child = spawn(process.execPath, ['--import', MUTATE, MAIN, ...args], {
      env: { ...process.env, ORACLE_MUTATION: name },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number | null];
    const line = output.trim().split('\n').at(-1) ?? '';
    const { failed } = JSON.parse(line) as { failed?: { seed: number; problem: string } };
    if ((failed === undefined) !== (code === 0))
      throw new Error(`the oracle ended with code ${code}: ${output}`);
    yield { mutation: name, by: failed };
  }
}
