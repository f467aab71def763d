import { onParentExit } from '../../processes/ipc.ts';
import { CommandFailure, UsageFailure } from './failure.ts';

export type Terminal = NodeJS.ReadableStream & { readonly isTTY?: boolean };

export async function prompt(
  question: string,
  input: Terminal = process.stdin,
  output: NodeJS.WritableStream = process.stderr,
): Promise<string> {
  const { createInterface } = await import('node:readline/promises');
  const lines = createInterface({ input, output });
  try {
    return (await lines.question(question)).trim();
  } finally {
    lines.close();
  }
}

/**
 * Asks for a yes. A change without a terminal needs `--yes`, so that no script changes data unasked.
 * @param undone the message for other answers @throws CommandFailure; UsageFailure without a terminal
 */
export async function confirm(
  question: string,
  undone: string,
  input: Terminal = process.stdin,
  output?: NodeJS.WritableStream,
): Promise<void> {
  if (!input.isTTY)
    throw new UsageFailure(`${undone}, because there is no terminal to confirm; confirm with --yes`);
  const answer = await prompt(`${question} Type yes to continue: `, input, output);
  if (!/^y(?:es)?$/i.test(answer)) throw new CommandFailure(undone);
}

/** The terminal and npm both send SIGINT: two within this time (ms) are one key press. */
const SAME_KEY_PRESS_MS = 1000;

/** Resolves on Ctrl-C, on SIGTERM, or when the `up` that started this process ends. A second Ctrl-C exits at once. */
export function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    let first: number | undefined;
    const on = (signal: NodeJS.Signals) => {
      const now = performance.now();
      if (first !== undefined && signal === 'SIGINT' && now - first > SAME_KEY_PRESS_MS) process.exit(130);
      first ??= now;
      resolve(signal);
    };
    process.on('SIGINT', on).on('SIGTERM', on);
    onParentExit(() => resolve('parent gone'));
  });
}
