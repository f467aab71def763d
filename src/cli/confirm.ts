import { createInterface } from 'node:readline/promises';
import { CommandFailure } from './failure.ts';

export type Terminal = NodeJS.ReadableStream & { readonly isTTY?: boolean };

/** Asks a person, if there is one. @throws CommandFailure for any answer but yes; `undone` says what did not happen */
export async function confirm(
  question: string,
  undone: string,
  input: Terminal,
  output: NodeJS.WritableStream,
): Promise<void> {
  if (!input.isTTY) return;
  const asking = createInterface({ input, output });
  try {
    const answer = await asking.question(`${question} Type yes to go on: `);
    if (!/^y(?:es)?$/i.test(answer.trim())) throw new CommandFailure(undone);
  } finally {
    asking.close();
  }
}
