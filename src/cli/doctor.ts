/** Checks everything that Fleetbook needs, and prints how to fix what is wrong. */
import { FEATURE_CONFIG, FEATURES } from '../app/features.ts';
import { type Environment, inspectConfig } from '../config/config.ts';
import { BadSetting } from '../config/settings.ts';
import { messageOf } from '../domain/errors.ts';
import { checkConfiguration } from './doctor/configuration.ts';
import { checkDatabase } from './doctor/database.ts';
import { type Finding, problem, problemOf, warning } from './doctor/finding.ts';
import { checkPorts } from './doctor/ports.ts';
import { checkRedis } from './doctor/redis.ts';
import { checkSources } from './doctor/sources.ts';
import type { Json } from './terminal/command-parts.ts';
import { printJson, printText } from './terminal/print.ts';
import { count, wrapped } from './terminal/table.ts';

const WIDTH = 80;

export async function doctorCommand(env: Environment, options: Json): Promise<void> {
  const findings = await examine(env);
  const problems = findings.filter(({ verdict }) => verdict === 'problem').length;
  if (problems > 0) process.exitCode = 1;
  if (options.json) printJson({ healthy: problems === 0, findings });
  else printText(findingsText(findings));
}

/** Runs every check, also after one fails, and returns findings in a fixed order. @param now for tests of the clock */
export async function examine(env: Environment, now = () => new Date()): Promise<Finding[]> {
  const config = inspectConfig(env, FEATURE_CONFIG);
  const found = await Promise.all([
    run('database', () => checkDatabase(config, now)),
    run('Redis', () => checkRedis(config)),
    ...FEATURES.map(({ name, check }) => run(name, async () => (await check?.(config)) ?? [])),
    run('ports', () => checkPorts(config)),
    run('sources', () => checkSources(config, env, now)),
  ]);
  return [...checkConfiguration(config, env), ...found.flat()];

  async function run(name: string, check: () => Promise<readonly Finding[]>): Promise<readonly Finding[]> {
    try {
      return await check();
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
      const isReported =
        name === 'sources' || name === 'exports' || (SETTINGS_OF[name] ?? []).some((setting) => env[setting]);
      return [
        isReported
          ? warning(name, 'not checked: a setting is invalid or missing', null)
          : problemOf(name, error.message),
      ];
    }
  }
}

/** The settings of a check. One of them must be set. */
const SETTINGS_OF: Readonly<Record<string, readonly string[]>> = {
  database: ['DATABASE_URL'],
  Redis: ['REDIS_URL', 'QUEUE_REDIS_URL', 'CACHE_REDIS_URL'],
};

/** Returns a paragraph for each finding, within 80 columns, and a summary. */
export function findingsText(findings: readonly Finding[]): string {
  const paragraphs = findings.map(({ check, verdict, found, mend: fix }) => {
    const mark = { ok: 'ok      ', warning: 'warning ', problem: 'PROBLEM ' }[verdict];
    const text = wrapped(`${check}: ${found}`, WIDTH - mark.length);
    const remedy = fix === null ? '' : wrapped(`fix: ${fix}`, WIDTH - mark.length - 2);
    return indented(text, mark, 0) + indented(remedy, mark, 2, true);
  });
  const of = (verdict: Finding['verdict']) => findings.filter((each) => each.verdict === verdict).length;
  const problems = of('problem');
  const last = problems === 0 ? 'no problems' : `${count(problems, 'problem')} to fix`;
  return `${paragraphs.join('')}\n${last}, ${count(of('warning'), 'warning')}\n`;
}

function indented(text: string, mark: string, by: number, isRemedy = false): string {
  if (text === '') return '';
  const margin = ' '.repeat(mark.length + by);
  return text
    .trimEnd()
    .split('\n')
    .map((line, index) => `${index === 0 && !isRemedy ? mark : margin}${line}\n`)
    .join('');
}
