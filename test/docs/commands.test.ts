import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { addCommands } from '../../src/cli/commands.ts';
import { inPackage } from '../../src/config/package.ts';

const rows = readFileSync(inPackage('docs/commands.md'), 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => line.split(' | ')[0] ?? '');

/** Returns the names of all visible commands, each with the names of its groups. */
function commandNames(command: Command): string[] {
  const visible = command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => each.name() !== 'help');
  if (visible.length === 0) return [command.name()];
  const names = visible.flatMap(commandNames);
  return command.parent === null ? names : names.map((name) => `${command.name()} ${name}`);
}

const program = new Command('fleetbook');
await addCommands(program, {});

describe('docs/commands.md', () => {
  const names = commandNames(program);

  it('is compared with all commands', () => expect(names).toContain('hold approve'));

  // A row names its group once: `org create <slug>` · `list`.
  it.each(names)('lists the command %s', (name) => {
    const [first = '', second] = name.split(' ');
    const row = rows.find(
      (cell) =>
        cell.startsWith(`| \`${first}`) &&
        (second === undefined || new RegExp(`[\`\\s]${second}[\`\\s]`).test(cell)),
    );
    const other = rows.find((cell) => new RegExp(`\`${name}[\`\\s]`).test(cell));
    expect(row ?? other, name).toBeDefined();
  });
});
