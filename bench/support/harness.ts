/** What every benchmark shares: its options, the servers that it measures, and its result. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Sql } from '../../src/db/connection/connect.ts';
import { type Bar, table, verdict } from './bar.ts';
import { type Servers, startServers } from './servers.ts';

interface Flag {
  readonly kind: 'flag';
  readonly what: string;
}

interface Count {
  readonly kind: 'count';
  readonly what: string;
  readonly byDefault: number;
  /** By default with `--quick`. */
  readonly quick: number;
  readonly least: number;
  /** The value is a multiple of it. */
  readonly of: number;
}

interface Choice<Name extends string> {
  readonly kind: 'choice';
  readonly what: string;
  readonly names: readonly Name[];
}

type Options = Readonly<Record<string, Flag | Count | Choice<string>>>;

type Values<Given> = {
  readonly [Key in keyof Given]: Given[Key] extends Choice<infer Name>
    ? Name | undefined
    : Given[Key] extends Count
      ? number
      : boolean;
};

/** An option without a value. */
export const flag = (what: string): Flag => ({ kind: 'flag', what });

/** An option that is a whole number. */
export const count = (
  what: string,
  byDefault: number,
  { quick = byDefault, least = 1, of = 1 }: Partial<Pick<Count, 'quick' | 'least' | 'of'>> = {},
): Count => ({ kind: 'count', what, byDefault, quick, least, of });

/** An option that is one of these names. */
export const choice = <const Name extends string>(what: string, names: readonly Name[]): Choice<Name> => ({
  ...{ kind: 'choice', what, names },
});

/**
 * Reads the options of the command. `--help` explains them and ends the process, and a wrong one ends it with the remedy.
 * @param about what is measured, and what it needs
 */
export function readOptions<const Given extends Options>(about: string, options: Given): Values<Given> {
  const all: Record<string, { type: 'boolean' | 'string' }> = { help: { type: 'boolean' } };
  for (const [name, { kind }] of Object.entries(options))
    all[name] = { type: kind === 'flag' ? 'boolean' : 'string' };
  let given: Texts;
  try {
    given = parseArgs({ options: all }).values as typeof given;
  } catch (error) {
    return give((error as Error).message);
  }
  if (given.help) {
    process.stdout.write(explain(about, options));
    process.exit();
  }
  const values = Object.entries(options).map(([name, option]) => [name, readValue(name, option, given)]);
  return Object.fromEntries(values) as Values<Given>;
}

type Texts = Readonly<Record<string, string | boolean | undefined>>;

function readValue(
  name: string,
  option: Options[string],
  given: Texts,
): string | number | boolean | undefined {
  if (option.kind === 'flag') return given[name] === true;
  if (option.kind === 'count') return numberOf(name, option, given);
  const text = given[name];
  if (text === undefined || option.names.some((each) => each === text)) return text;
  return give(`--${name} must be one of ${option.names.join(', ')}; it is ${text}`);
}

function numberOf(name: string, { byDefault, quick, least, of }: Count, given: Texts): number {
  const text = given[name] ?? (given.quick ? quick : byDefault);
  const value = Number(text);
  if (Number.isInteger(value) && value >= least && value % of === 0) return value;
  const multiple = of === 1 ? '' : `, a multiple of ${of}`;
  return give(`--${name} must be a whole number from ${least}${multiple}; it is ${text}`);
}

function explain(about: string, options: Options): string {
  const lines = Object.entries(options).map(([name, option]) => {
    return `  --${name.padEnd(14)} ${option.what}${values(option)}\n`;
  });
  return `${about}\n\n${lines.join('')}`;
}

function values(option: Options[string]): string {
  if (option.kind === 'flag') return '';
  if (option.kind === 'choice') return `: ${option.names.join(', ')}`;
  const quick = option.quick === option.byDefault ? '' : `, ${option.quick} with --quick`;
  return `; ${option.byDefault} by default${quick}`;
}

/** Ends the process with a remedy. */
export function give(remedy: string): never {
  process.stderr.write(`${remedy}\n`);
  process.exit(2);
}

/** Prints progress. Standard output has only the result. */
export const say = (line: string): void => void process.stderr.write(`${line}\n`);

/**
 * Prints the bars, as a table or with all results as JSON. The exit code is 1 if one is missed.
 * @param footer lines below the table
 */
export function report(
  bars: readonly Bar[],
  {
    json = false,
    footer = [],
    ...results
  }: { json?: boolean; footer?: readonly string[]; [name: string]: unknown } = {},
): void {
  const judged = bars.map((bar) => ({ ...bar, verdict: verdict(bar) }));
  const lines = footer.map((line) => `${line}\n`).join('');
  process.stdout.write(
    json ? `${JSON.stringify({ ...results, bars: judged }, undefined, 2)}\n` : table(bars) + lines,
  );
  process.exitCode = judged.some((bar) => bar.verdict === 'MISSED') ? 1 : 0;
}

export interface Stage extends AsyncDisposable {
  /** A temporary folder. */
  readonly folder: string;
  readonly servers: Servers;
  readonly redisUrl: string;
  /** The address of an empty migrated database, and a connection of its owner. */
  readonly url: string;
  readonly sql: Sql;
  /** Releases a resource before the servers. */
  use<T extends AsyncDisposable>(resource: T): T;
  defer(release: () => unknown): void;
}

/** Starts the servers of a benchmark. */
export async function openStage(options: { readonly countStatements?: boolean } = {}): Promise<Stage> {
  await using opened = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'fleetbook-bench-'));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const servers = opened.use(await startServers(options));
  const { url, sql } = opened.use(await servers.database('bench'));
  const closing = opened.move();
  return {
    ...{ folder, servers, redisUrl: servers.redisUrl, url, sql },
    use: (resource) => closing.use(resource),
    defer: (release) => closing.defer(async () => void (await release())),
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}
