/** Credentials that a command prints, as kubectl's exec plugins do. */
import { spawn } from 'node:child_process';
import { basename } from 'node:path';
import { SourceError } from '../source.ts';
import { tokenInOutput } from './issued-token.ts';
import type { IssuedToken } from './provider.ts';

const COMMAND_MS = 30_000;
const MOST_OUTPUT_BYTES = 64 * 1024;

export interface CredentialCommand {
  /** The program and its arguments; no shell reads them. */
  readonly command: readonly string[];
  /** The setting that names the command, for an operator. */
  readonly setting: string;
  readonly deadlineMs?: number;
  readonly now?: () => number;
}

/**
 * Runs the command once. What it prints, and its arguments, may be secrets: no message repeats them.
 * @throws SourceError `misconfigured` when it cannot be started or prints no token, `retry` when it fails or hangs
 */
export async function tokenOfCommand(options: CredentialCommand): Promise<IssuedToken> {
  const { command, setting, deadlineMs = COMMAND_MS, now = Date.now } = options;
  const [program = '', ...args] = command;
  const named = `the credential command ${basename(program)} (${setting})`;
  const fail = (kind: 'retry' | 'misconfigured', problem: string) =>
    new SourceError(kind, `${named} ${problem}`, { limitsAll: true });
  // A process group of its own, so that the command's children end with it.
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  const kill = () => {
    child.stdout.destroy();
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended meanwhile.
    }
  };
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const timer = setTimeout(() => {
    reject(fail('retry', `did not end within ${deadlineMs} ms; run it by hand to see what it waits for`));
  }, deadlineMs);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    output += piece;
    if (output.length > MOST_OUTPUT_BYTES)
      reject(fail('misconfigured', `prints more than ${MOST_OUTPUT_BYTES} bytes; it must print a token`));
  });
  // The error's message and fields repeat the arguments: only its code is used.
  child.once('error', (error: NodeJS.ErrnoException) =>
    reject(fail('misconfigured', `cannot be started (${error.code}); check the path of the program`)),
  );
  child.once('close', (code, signal) => {
    if (code === 0) resolve(output);
    else
      reject(
        fail('retry', `ended with ${code ?? signal}; run it by hand as the same user to see what it says`),
      );
  });
  try {
    const issued = tokenInOutput(await promise, now());
    if (issued === undefined) {
      throw fail(
        'misconfigured',
        'prints neither a token alone nor JSON that has one ({"token": …, "expiry": …}); change the command',
      );
    }
    return issued;
  } finally {
    clearTimeout(timer);
    kill();
  }
}
