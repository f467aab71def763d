import { Command, CommanderError, Help, type Option } from 'commander';
import type { CommandContext, CommandFile } from '../app/feature.ts';
import { VERSION } from '../config/package.ts';
import { BadSetting, SETTINGS } from '../config/settings.ts';
import type { Environment } from '../config/source-config.ts';
import { runningEnvironment } from '../dev/running.ts';
import { PlainFailure } from '../domain/errors.ts';
import { harmlessLines } from '../domain/text/control-characters.ts';
import { failureMessage, UsageFailure } from './terminal/failure.ts';
import { printAside } from './terminal/output.ts';

/** Exit codes: wrong arguments or settings, and any other failure. */
const USAGE = 2;
const FAILURE = 1;

/** Runs one command, and returns its exit code. @param args without the names of Node.js and the script */
export async function main(args: readonly string[], env: Environment): Promise<number> {
  const program = new Command('fleetbook')
    .description('The catalogue of cloud machines and the register of database clusters.')
    .version(VERSION)
    .exitOverride()
    .configureOutput({
      outputError: (text, write) => write(harmlessLines(text.replace(/^error: /, 'fleetbook: '))),
    })
    .showSuggestionAfterError();
  const isVersion = args.length === 1 && args[0] === '--version';
  if (!isVersion) await addCommands(program, env, args[0]);
  try {
    await program.parseAsync(args, { from: 'user' });
    return 0;
  } catch (error) {
    // Commander has printed its message.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
    for (const line of failureMessage(error, commandEnvironment(env).DATABASE_URL).split('\n'))
      printAside(`fleetbook: ${line}`);
    if (env.LOG_LEVEL === 'debug' && !(error instanceof PlainFailure) && error instanceof Error)
      printAside(error.stack ?? '');
    return error instanceof BadSetting || error instanceof UsageFailure ? USAGE : FAILURE;
  }
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

const FILES: readonly CommandFile[] = [
  { names: ['up', 'serve', 'work'], load: async () => ({ define: defineProcesses }) },
  { names: ['demo'], load: () => import('./demo.ts') },
  { names: ['migrate', 'publish', 'doctor', 'restored'], load: () => import('./maintenance.ts') },
  { names: ['sync'], load: () => import('./sources/sync.ts') },
  { names: ['status'], load: () => import('./status.ts') },
  { names: ['rejected', 'excluded'], load: () => import('./sources/rejected.ts') },
  { names: ['runs', 'run'], load: () => import('./runs/runs.ts') },
  { names: ['changes'], load: () => import('./runs/changes.ts') },
  { names: ['accept'], load: () => import('./sources/accept.ts') },
  { names: ['machines', 'clusters'], load: () => import('./find.ts') },
  { names: ['prices'], load: () => import('./sources/prices.ts') },
  { names: ['source'], load: () => import('./sources/source.ts') },
  { names: ['hold'], load: () => import('./held/hold.ts') },
  { names: ['org'], load: () => import('./accounts/org.ts') },
  { names: ['user'], load: () => import('./accounts/user.ts') },
  { names: ['token'], load: () => import('./accounts/token.ts') },
  { names: ['audit'], load: () => import('./accounts/audit.ts') },
];

/** Adds the command that `word` names; all commands, also of features, if it names none, e.g. for `--help`. */
export async function addCommands(program: Command, given: Environment, word = ''): Promise<void> {
  program.configureHelp({ optionDescription: describedOption });
  const env = () => commandEnvironment(given);
  const config = async () => {
    const { readConfig } = await import('../config/config.ts');
    const { FEATURE_CONFIG } = await import('../app/feature-config.ts');
    return readConfig(env(), FEATURE_CONFIG);
  };
  const add = async (files: readonly CommandFile[]) => {
    const loaded = await Promise.all(files.map(({ load }) => load()));
    for (const { define } of loaded) define(program, { env, given, config });
  };
  const named = (files: readonly CommandFile[]) => files.filter(({ names }) => names.includes(word));
  const [own] = named(FILES);
  if (own) return add([own]);
  const { FEATURES } = await import('../app/features.ts');
  const ofFeatures = FEATURES.flatMap(({ commands = [] }) => commands);
  const [found] = named(ofFeatures);
  if (found) return add([found]);
  await add([...FILES, ...ofFeatures]);
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

function defineProcesses(program: Command, { given }: CommandContext): void {
  program
    .command('up')
    .description('run everything on this machine: PostgreSQL, Redis, workers and the API')
    .option('--live', 'read public providers that need no credentials, instead of the sample')
    .action(async (options: { live?: boolean }) =>
      (await import('../app/processes/up.ts')).up(given, options),
    );
  program
    .command('serve')
    .description('serve the API')
    .option(
      '--processes <count>',
      'processes that share the port; max starts one for each core (default: PROCESSES)',
    )
    .action(async (options: { processes?: string }) =>
      (await import('../app/processes/serve.ts')).serve(given, options),
    );
  program
    .command('work')
    .description('run the schedules, the syncs and the publisher')
    .action(async () => (await import('../app/processes/work.ts')).work(given));
}

/** Adds the settings of an `up` in the same home, unless the command names another database. */
function commandEnvironment(env: Environment): Environment {
  const running = runningEnvironment(env.FLEETBOOK_HOME || SETTINGS.FLEETBOOK_HOME.fallback);
  if (running === undefined) return env;
  if (env.DATABASE_URL && env.DATABASE_URL !== running.DATABASE_URL) return env;
  return { ...running, ...Object.fromEntries(Object.entries(env).filter(([, value]) => value)) };
}
