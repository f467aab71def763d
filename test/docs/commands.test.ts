import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { addCommands, GROUPS } from '../../src/cli/commands.ts';
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

describe('--help', () => {
  const visible = program
    .createHelp()
    .visibleCommands(program)
    .map((command) => command.name());

  it('has each command below one heading', () => {
    expect(Object.values(GROUPS).flat().toSorted()).toEqual(
      visible.filter((name) => name !== 'help').toSorted(),
    );
  });

  it('prints the headings with their commands in order', () => {
    const text = program.helpInformation();
    const places = Object.entries(GROUPS).flatMap(([heading, names]) => [
      text.indexOf(`\n${heading}:\n`),
      ...names.map((name) => text.search(new RegExp(`^  ${name}\\b`, 'm'))),
    ]);
    expect(places).not.toContain(-1);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  });

  it('marks the options that a command requires', () => {
    const create = program.commands.find((command) => command.name() === 'user')?.commands.at(0);
    expect(create?.helpInformation()).toMatch(/--org <slug> +slug of the organization \(required\)/);
  });
});
