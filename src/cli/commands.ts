import { type Command, Help, type Option } from 'commander';
import type { CommandContext } from '../app/feature.ts';
import type { Environment } from '../config/source-config.ts';
import { commandEnvironment } from './environment.ts';
import type { Env } from './terminal/options.ts';

interface CommandFile {
  /** Adds the file's commands. @param given the environment of this process, without the settings of a running `up` */
  define(program: Command, env: Env, given: Environment): void;
}

/** The commands of `--help` by heading, in order; also those of features. */
export const GROUPS: Readonly<Record<string, readonly string[]>> = {
  Run: ['up', 'demo', 'serve', 'work', 'migrate', 'doctor', 'completion'],
  'Sources and runs': [
    ...['status', 'sync', 'source', 'runs', 'run', 'changes'],
    ...['rejected', 'excluded', 'accept', 'hold'],
  ],
  'Machines and clusters': ['machines', 'clusters', 'databases', 'prices'],
  Organizations: ['org', 'user', 'token', 'price', 'webhook'],
  Operators: ['operator', 'audit', 'alert'],
  'Cache and backup': ['publish', 'restored'],
};

/** Each file with the names of its commands. */
const FILES: readonly (readonly [names: readonly string[], load: () => Promise<CommandFile>])[] = [
  [['up', 'serve', 'work'], () => import('./processes.ts')],
  [['demo'], () => import('./demo.ts')],
  [['migrate', 'publish', 'doctor', 'restored'], () => import('./maintenance.ts')],
  [['sync'], () => import('./sources/sync.ts')],
  [['status'], () => import('./status.ts')],
  [['rejected', 'excluded'], () => import('./sources/rejected.ts')],
  [['runs', 'run'], () => import('./runs/runs.ts')],
  [['changes'], () => import('./runs/changes.ts')],
  [['accept'], () => import('./sources/accept.ts')],
  [['machines', 'clusters'], () => import('./find.ts')],
  [['prices'], () => import('./sources/prices.ts')],
  [['source'], () => import('./sources/source.ts')],
  [['hold'], () => import('./held/hold.ts')],
  [['org'], () => import('./accounts/org.ts')],
  [['user'], () => import('./accounts/user.ts')],
  [['token'], () => import('./accounts/token.ts')],
  [['audit'], () => import('./accounts/audit.ts')],
];

/** Adds the command that `word` names; all commands, also of features, if it names none, e.g. for `--help`. */
export async function addCommands(program: Command, given: Environment, word?: string): Promise<void> {
  const env = () => commandEnvironment(given);
  program.configureHelp({ optionDescription: describedOption });
  const named = FILES.filter(([names]) => word !== undefined && names.includes(word));
  const needed = named.length > 0 ? named : FILES;
  for (const { define } of await Promise.all(needed.map(([, load]) => load()))) define(program, env, given);
  if (named.length > 0) return;
  const { FEATURE_CONFIG, FEATURES } = await import('../app/features.ts');
  const config = async () => (await import('../config/config.ts')).readConfig(env(), FEATURE_CONFIG);
  const openWriter: CommandContext['openWriter'] = async (options) =>
    (await import('./terminal/open.ts')).openWriter(env(), options);
  for (const { commands } of FEATURES) commands?.(program, { env, config, openWriter });
  program
    .command('completion')
    .description('print a script that completes commands and options in a shell')
    .argument('<shell>', 'bash, zsh or fish')
    .action(async (shell: string) => (await import('./completion.ts')).completionCommand(program, shell));
  group(program);
}

function group(program: Command): void {
  const order = Object.values(GROUPS).flat();
  for (const [heading, names] of Object.entries(GROUPS))
    for (const command of program.commands)
      if (names.includes(command.name())) command.helpGroup(`${heading}:`);
  (program.commands as Command[]).sort((a, b) => order.indexOf(a.name()) - order.indexOf(b.name()));
}

/** Marks an option that a command cannot do without. */
function describedOption(option: Option): string {
  const text = new Help().optionDescription(option);
  return option.mandatory ? `${text} (required)` : text;
}
