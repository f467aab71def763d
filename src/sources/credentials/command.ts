import { spawn } from 'node:child_process';
import { basename } from 'node:path';
import { SourceError } from '../source.ts';
import { tokenInOutput } from './issued-token.ts';
import type { IssuedToken } from './provider.ts';

const COMMAND_MS = 30_000;
const MOST_OUTPUT_BYTES = 64 * 1024;

/**
 * Runs a command that prints credentials. Its output and arguments may be secrets: no message contains them.
 * @throws SourceError `misconfigured` if it cannot be started or prints no token, `retry` if it fails or hangs
 */
export async function tokenOfCommand(
  [program = '', ...args]: readonly string[],
  setting: string,
  { deadlineMs = COMMAND_MS, now = Date.now } = {},
): Promise<IssuedToken> {
  const named = `the credential command ${basename(program)} (${setting})`;
  const fail = (kind: 'retry' | 'misconfigured', problem: string) =>
    new SourceError(kind, `${named} ${problem}`, { limitsAll: true });
  // In its own process group, so that the command's children end with it.
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  const kill = () => {
    child.stdout.destroy();
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {}
  };
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const timer = setTimeout(() => {
    reject(fail('retry', `did not end within ${deadlineMs} ms; run it by hand to find the reason`));
  }, deadlineMs);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    output += piece;
    if (output.length > MOST_OUTPUT_BYTES)
      reject(fail('misconfigured', `prints more than ${MOST_OUTPUT_BYTES} bytes; it must print a token`));
  });
  // The error's message and fields contain the arguments: only its code is safe.
  child.once('error', (error: NodeJS.ErrnoException) =>
    reject(fail('misconfigured', `cannot be started (${error.code}); check the path of the program`)),
  );
  child.once('close', (code, signal) => {
    if (code === 0) resolve(output);
    else
      reject(
        fail('retry', `ended with ${code ?? signal}; run it by hand as the same user to see its output`),
      );
  });
  try {
    const issued = tokenInOutput(await promise, now());
    if (issued === undefined) {
      throw fail(
        'misconfigured',
        'prints neither a token nor JSON with one ({"token": …, "expiry": …}); change the command',
      );
    }
    return issued;
  } finally {
    clearTimeout(timer);
    kill();
  }
}
