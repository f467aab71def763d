/** Checks everything that Fleetbook needs, and prints how to fix what is wrong. */
import { FEATURE_CONFIG } from '../app/feature-settings.ts';
import { FEATURES } from '../app/features.ts';
import { type Environment, inspectConfig } from '../config/config.ts';
import { BadSetting } from '../config/settings.ts';
import { messageOf } from '../lib/driver-error.ts';
import { checkConfiguration } from './doctor/configuration.ts';
import { checkDatabase } from './doctor/database.ts';
import { type Finding, problem, problemOf, warning } from './doctor/finding.ts';
import { checkPorts } from './doctor/ports.ts';
import { checkRedis } from './doctor/redis.ts';
import { checkSources } from './doctor/sources.ts';
import { printJson, printText } from './terminal/print.ts';
import { count, wrapped } from './terminal/table.ts';

const WIDTH = 80;

/** Exit code 1 when there is a problem. */
export async function doctorCommand(env: Environment, options: { json?: boolean }): Promise<void> {
  const findings = await examine(env);
  const problems = findings.filter(({ verdict }) => verdict === 'problem').length;
  if (problems > 0) process.exitCode = 1;
  if (options.json) printJson({ healthy: problems === 0, findings });
  else printText(findingsText(findings));
}

/** Every check, in a fixed order; none keeps another one from being made. @param now for tests of the clock */
export async function examine(env: Environment, now = () => new Date()): Promise<Finding[]> {
  const config = inspectConfig(env, FEATURE_CONFIG);
  const found = await Promise.all([
    made('database', () => checkDatabase(config, now)),
    made('Redis', () => checkRedis(config)),
    ...FEATURES.map(({ name, check }) => made(name, async () => (await check?.(config)) ?? [])),
    made('ports', () => checkPorts(config)),
    made('sources', () => checkSources(config, env, now)),
  ]);
  return [...checkConfiguration(config, env), ...found.flat()];

  async function made(name: string, check: () => Promise<readonly Finding[]>): Promise<readonly Finding[]> {
    try {
      return await check();
    } catch (error) {
      if (!(error instanceof BadSetting))
        return [
          problem(
            name,
            `the check itself failed: ${messageOf(error)}`,
            'this is a fault of Fleetbook: report it with this message',
          ),
        ];
      // The check of the configuration reports invalid values, and the check of the database a missing one.
      const isTold =
        name === 'sources' || name === 'exports' || (SETTINGS_OF[name] ?? []).some((setting) => env[setting]);
      return [
        isTold
          ? warning(name, 'not checked: a setting is invalid or missing', null)
          : problemOf(name, error.message),
      ];
    }
  }
}

/** Settings any of which a check takes. */
const SETTINGS_OF: Readonly<Record<string, readonly string[]>> = {
  database: ['DATABASE_URL'],
  Redis: ['REDIS_URL', 'QUEUE_REDIS_URL', 'CACHE_REDIS_URL'],
};

/** A finding a paragraph, within 80 columns, and a line that sums up. */
export function findingsText(findings: readonly Finding[]): string {
  const paragraphs = findings.map(({ check, verdict, found, mend }) => {
    const mark = { ok: 'ok      ', warning: 'warning ', problem: 'PROBLEM ' }[verdict];
    const told = wrapped(`${check}: ${found}`, WIDTH - mark.length);
    const remedy = mend === null ? '' : wrapped(`fix: ${mend}`, WIDTH - mark.length - 2);
    return indented(told, mark, 0) + indented(remedy, mark, 2, true);
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
