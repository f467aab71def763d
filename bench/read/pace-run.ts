import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pinned } from './program.ts';

export interface PaceTask {
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly rate: number;
  readonly seconds: number;
  /** True for a client that sleeps between requests, because others need its core too. Times then count from the sending. */
  readonly sleeps?: boolean;
}

/** Milliseconds from the request's due time: waiting for the server counts. */
export interface PacedRun {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly answered: number;
}

/** Runs the client in a separate process on the load's core. @throws Error for an unexpected answer */
export async function runPace(task: PaceTask, logFile: string): Promise<PacedRun> {
  const script = join(import.meta.dirname, 'programs/pace.ts');
  const log = openSync(logFile, 'a');
  const [command, args] = pinned('load', process.execPath, [script, JSON.stringify(task)]);
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', log] });
  closeSync(log);
  let output = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0) {
    // The log is removed with the bench's folder.
    const why = /^\w*Error: .*/m.exec(readFileSync(logFile, 'utf8'))?.[0] ?? 'it said nothing';
    throw new Error(`the paced client ended with code ${code}: ${why}`);
  }
  return JSON.parse(output) as PacedRun;
}
