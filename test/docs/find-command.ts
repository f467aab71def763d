import { Command } from 'commander';
import { addCommands } from '../../src/cli/commands.ts';

const program = new Command('fleetbook');
await addCommands(program, {});

/** Returns the command that a line calls, and the words after its name. */
export function findCommand(line: string): { command: Command; rest: string[] } {
  let command = program;
  const rest = line.split(' ');
  for (;;) {
    const next = command.commands.find((each) => each.name() === rest[0]);
    if (next === undefined) return { command, rest };
    command = next;
    rest.shift();
  }
}
