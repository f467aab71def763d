import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { WORKER_NODE_ARGS } from '../../workers/heap.ts';
import type { Measured, Task } from './worker.ts';

/** Runs a task in a new process. @throws Error if it fails; its standard error has the reason */
export async function runWorker(task: Task): Promise<Measured> {
  const script = join(import.meta.dirname, 'worker.ts');
  const child = spawn(process.execPath, [...WORKER_NODE_ARGS, script, JSON.stringify(task)], {
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
