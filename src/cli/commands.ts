import type { Command } from 'commander';
import type { CommandContext } from '../app/feature.ts';
import type { Environment } from '../config/source-config.ts';
import { commandEnvironment } from './environment.ts';
import type { Env } from './terminal/options.ts';

interface CommandFile {
  /** Adds the file's commands. @param given the environment of this process, without the settings of a running `up` */
  define(program: Command, env: Env, given: Environment): void;
}

/** Each file with the names of its commands, in the order of `--help`. */
const FILES: readonly (readonly [names: readonly string[], load: () => Promise<CommandFile>])[] = [
  [['up', 'serve', 'work'], () => import('./processes.ts')],
  [['demo'], () => import('./demo.ts')],
  [['mcp'], () => import('./mcp.ts')],
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
}
