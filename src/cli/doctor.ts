import { FEATURE_CONFIG, FEATURES } from '../app/features.ts';
import { openFilesMisfit } from '../app/open-files.ts';
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

/** Checks the limit of this process: that of a service may be another one, and its start checks that. */
function checkOpenFiles({ settings }: InspectedConfig): Finding[] {
  const misfit = openFilesMisfit(settings);
  return misfit ? [warning('open files', misfit.what, misfit.remedy)] : [];
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
