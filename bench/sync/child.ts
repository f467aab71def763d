/** Runs the measured process from a bundle, as production does: sources take 45 MB more, most of it to remove types. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import product from '../../rolldown.config.ts';
import { WORKER_NODE_ARGS } from '../../src/processes/child-process.ts';
import type { Measured, Task } from './worker.ts';

/** A folder of the repository. The program is in `chunks`, because it reads `package.json` two folders up, as those of `dist` do. */
const FOLDER = join(import.meta.dirname, '../../.bench');

let bundled: Promise<string> | undefined;

async function bundle(): Promise<string> {
  const { output, ...input } = product;
  await using build = await rolldown({
    ...input,
    input: { worker: join(import.meta.dirname, 'worker.ts') },
    logLevel: 'silent',
  });
  await build.write({ ...output, dir: FOLDER, entryFileNames: 'chunks/[name].js' });
  return join(FOLDER, 'chunks/worker.js');
}

/** Runs a task in a new process. @throws Error if it fails; its standard error has the reason */
export async function runWorker(task: Task): Promise<Measured> {
  bundled ??= bundle();
  const child = spawn(process.execPath, [...WORKER_NODE_ARGS, await bundled, JSON.stringify(task)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0) throw new Error(`the measured process ended with code ${code}`);
  return JSON.parse(output) as Measured;
}
