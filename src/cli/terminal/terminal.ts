import { createInterface } from 'node:readline/promises';
import { whenParentIsGone } from '../../processes/ipc.ts';
import { CommandFailure } from './failure.ts';

export type Terminal = NodeJS.ReadableStream & { readonly isTTY?: boolean };

/** What a person types, without the white space around it. */
export async function ask(question: string, input: Terminal, output: NodeJS.WritableStream): Promise<string> {
  const asking = createInterface({ input, output });
  try {
    return (await asking.question(question)).trim();
  } finally {
    asking.close();
  }
}

/** Asks a person, if there is one. @throws CommandFailure for any answer but yes; `undone` says what did not happen */
export async function confirm(
  question: string,
  undone: string,
  input: Terminal,
  output: NodeJS.WritableStream,
): Promise<void> {
  if (!input.isTTY) return;
  const answer = await ask(`${question} Type yes to go on: `, input, output);
  if (!/^y(?:es)?$/i.test(answer)) throw new CommandFailure(undone);
}

/** The terminal and npm both send a Ctrl-C. Two within this time (ms) are one key press. */
const SAME_KEY_PRESS_MS = 1000;

/** Resolves on Ctrl-C, SIGTERM, or when `up`, which started this process, is gone. A second Ctrl-C ends at once. */
export function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    let asked: number | undefined;
    const on = (signal: NodeJS.Signals) => {
      const now = performance.now();
      if (asked !== undefined && signal === 'SIGINT' && now - asked > SAME_KEY_PRESS_MS) process.exit(130);
      asked ??= now;
      resolve(signal);
    };
    process.on('SIGINT', on).on('SIGTERM', on);
    whenParentIsGone(() => resolve('parent gone'));
  });
}
