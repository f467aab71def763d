import { existsSync } from 'node:fs';
import { access, constants, stat, statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { FEATURE_CONFIG } from '../app/feature-config.ts';
import { FEATURES } from '../app/features.ts';
import { openFilesProblem } from '../app/open-files.ts';
import { type Environment, type InspectedConfig, inspectConfig } from '../config/config.ts';
import { BadSetting } from '../config/settings.ts';
import { messageOf } from '../domain/errors.ts';
import { checkDatabase } from './doctor/database.ts';
import { type Finding, ok, problem, problemOf, warning } from './doctor/finding.ts';
import { checkPorts } from './doctor/ports.ts';
import { checkQueues, checkRedis } from './doctor/redis.ts';
import { checkSources } from './doctor/sources.ts';
import type { Json } from './terminal/options.ts';
import { count, fitted, show } from './terminal/output.ts';

const WIDTH = 80;

export async function doctorCommand(env: Environment, options: Json): Promise<void> {
  const findings = await examine(env);
  const healthy = findings.every(({ verdict }) => verdict !== 'problem');
  if (!healthy) process.exitCode = 1;
  show(options, { healthy, findings }, () => findingsText(findings));
}

interface Check {
  readonly name: string;
  /** One of them must be set. Empty if other checks report its invalid and missing settings. */
  readonly settings: readonly string[];
  readonly find: () => Promise<readonly Finding[]>;
}

/** Runs every check, also after one fails, and returns findings in a fixed order. @param now for tests of the clock */
export async function examine(env: Environment, now = () => new Date()): Promise<Finding[]> {
  const config = inspectConfig(env, FEATURE_CONFIG);
  const checks: Check[] = [
    { name: 'database', settings: ['DATABASE_URL'], find: () => checkDatabase(config, now) },
    {
      name: 'Redis',
      settings: ['REDIS_URL', 'QUEUE_REDIS_URL', 'CACHE_REDIS_URL'],
      find: () => checkRedis(config),
    },
    {
      name: 'queues',
      settings: [],
      find: () => checkQueues(config, now),
    },
    ...FEATURES.map(({ name, check }) => ({
      name,
      settings: [],
      find: async () => (await check?.(config)) ?? [],
    })),
    { name: 'dump', settings: [], find: () => checkDump(config) },
    { name: 'ports', settings: [], find: () => checkPorts(config) },
    { name: 'open files', settings: [], find: async () => checkOpenFiles(config) },
    { name: 'sources', settings: [], find: () => checkSources(config, env, now) },
  ];
  const found = await Promise.all(checks.map((check) => run(check, env)));
  return [...checkConfiguration(config), ...found.flat()];
}

async function run({ name, settings, find }: Check, env: Environment): Promise<readonly Finding[]> {
  try {
    return await find();
  } catch (error) {
    if (!(error instanceof BadSetting))
      return [
        problem(
          name,
          `the check itself failed: ${messageOf(error)}`,
          'this is a bug of Fleetbook: report it with this message',
        ),
      ];
    // The check of the configuration reports invalid values, and the check of the database a missing one.
    const isReported = settings.length === 0 || settings.some((setting) => env[setting]);
    return [
      isReported
        ? warning(name, 'not checked: a setting is invalid or missing', null)
        : problemOf(name, error.message),
    ];
  }
}

export async function checkDump({ settings }: Pick<InspectedConfig, 'settings'>): Promise<Finding[]> {
  const check = 'dump';
  const folder = settings.SNAPSHOT_DIR;
  if (folder === undefined) return [];
  let nearest = resolve(folder);
  while (!existsSync(nearest)) nearest = dirname(nearest);
  try {
    if (!(await stat(nearest)).isDirectory()) throw new Error(`${nearest} is not a folder`);
    await access(nearest, constants.W_OK | constants.X_OK);
  } catch (error) {
    const remedy = 'set SNAPSHOT_DIR to a folder on a local disk that the readers’ user may write to';
    return [problem(check, `SNAPSHOT_DIR=${folder} cannot be used: ${messageOf(error)}`, remedy)];
  }
  const { bavail, bsize } = await statfs(nearest);
  // A dump has up to a third of these bytes, and a new one is written next to the old one.
  if (bavail * bsize < settings.MEMORY_LIMIT) {
    const found = `the disk of ${folder} has only ${Math.round((bavail * bsize) / 1e6)} MB left`;
    return [
      warning(check, found, 'free as many bytes on that disk as MEMORY_LIMIT has, or lower MEMORY_LIMIT'),
    ];
  }
  return [
    ok(
      check,
      nearest === resolve(folder) ? `${folder} can be written` : `the first reader creates ${folder}`,
    ),
  ];
}

/** Checks the limit of this process: that of a service may be another one, and its start checks that. */
function checkOpenFiles({ settings }: InspectedConfig): Finding[] {
  const found = openFilesProblem(settings);
  return found ? [warning('open files', found.what, found.remedy)] : [];
}

function checkConfiguration({ settings, named, problems }: InspectedConfig): Finding[] {
  const check = 'configuration';
  const file = settings.FLEETBOOK_CONFIG;
  const found = problems.map((line) => {
    const isOfFile = file !== undefined && line.startsWith(`${file}: `);
    return problem(check, line, isOfFile ? `correct the file ${file}` : 'correct this setting');
  });
  const of = file === undefined ? '' : `, with the file ${file}`;
  if (found.length === 0) found.push(ok(check, `${count(named.length, 'source')} configured${of}`));
  return found;
}

/** Returns a paragraph for each finding, within 80 columns, and a summary. */
export function findingsText(findings: readonly Finding[]): string {
  const paragraphs = findings.map(({ check, verdict, found, mend: fix }) => {
    const mark = { ok: 'ok      ', warning: 'warning ', problem: 'PROBLEM ' }[verdict];
    const margin = ' '.repeat(mark.length);
    const lines = fitted([`${check}: ${found}`], WIDTH - mark.length);
    const fixes = fix === null ? [] : fitted([`  fix: ${fix}`], WIDTH - mark.length);
    return [...lines, ...fixes].map((line, index) => `${index === 0 ? mark : margin}${line}\n`).join('');
  });
  const of = (verdict: Finding['verdict']) => findings.filter((each) => each.verdict === verdict).length;
  const problems = of('problem');
  const last = problems === 0 ? 'no problems' : `${count(problems, 'problem')} to fix`;
  return `${paragraphs.join('')}\n${last}, ${count(of('warning'), 'warning')}\n`;
}
