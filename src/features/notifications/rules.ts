/** The kinds of alerts, their limits and the operators' receivers: from the environment and the file of FLEETBOOK_CONFIG. */
import { z } from 'zod';
import type { Environment, WithSections } from '../../config/config.ts';
import { isHttpUrl } from '../../config/setting-values.ts';
import { valuesOf } from '../../config/settings.ts';
import { variable } from '../../config/sources-file.ts';
import { LIFECYCLE_DAYS } from '../../domain/lifecycle.ts';
import { RETIREMENT_NOTICE_DAYS } from '../../domain/machine.ts';
import { FAILURES_IN_ROW } from '../../domain/source.ts';
import { type Receiver, readSecret, SECRET_FORM } from './send.ts';
import { ALERT_SETTINGS } from './settings.ts';

/** A receiver of the operators. Its address is never stored or shown. */
export interface AlertReceiver extends Receiver {
  /** The name in the database, in logs and in commands. */
  readonly id: string;
  readonly format: 'standard' | 'slack';
  readonly kinds: readonly string[] | undefined;
}

export interface AlertRules {
  readonly webhooks: readonly AlertReceiver[];
  readonly failuresInRow: number;
  readonly priceRatio: number;
  readonly backlog: number;
  readonly repeatHours: number;
  /** The console's public address (OPS_URL); undefined for messages without links. */
  readonly opsUrl: string | undefined;
}

/** One worker sends to so many webhooks of organizations at the same time. A job that waits for its receiver holds no connection. */
export const WEBHOOKS_AT_ONCE = 32;

/** The alert of a region opens if this share of its published and sold-out machines is sold out. */
export const SOLD_OUT_SHARE = 0.5;
/** A region with fewer sold-out machines opens no alert. */
export const SOLD_OUT_AT_LEAST = 3;

export const DEFAULT_RULES: AlertRules = {
  webhooks: [],
  failuresInRow: FAILURES_IN_ROW,
  priceRatio: 1.5,
  backlog: 100,
  repeatHours: 24,
  opsUrl: undefined,
};

/** Describes when the alert of each kind of the core opens. */
export function rulesInWords(rules: Pick<AlertRules, 'failuresInRow' | 'priceRatio' | 'backlog'>) {
  return {
    batch_held: 'a guard holds a batch for a decision',
    source_stale: 'the last good run of a source is older than its maxAge',
    region_stale: 'the last good read of a region is older than the maxAge of its source, which is not stale',
    source_failing: `${rules.failuresInRow} runs in a row of a source failed`,
    sold_out: `at least ${SOLD_OUT_SHARE * 100} % of a region's machines are sold out, and at least ${SOLD_OUT_AT_LEAST} machines`,
    machine_retiring: `clusters run on a machine that its provider retires within ${RETIREMENT_NOTICE_DAYS} days, or has retired`,
    version_ending: `clusters run a version whose support ends within ${LIFECYCLE_DAYS.standard} days, or has ended`,
    source_paused:
      'two runs of a source ended their worker process within an hour, so Fleetbook paused the source for an hour',
    prices_moved: `a run moved prices by more than a factor of ${rules.priceRatio}; one message, no reminders`,
    stock_flipped:
      'a run found nearly all machines of a source sold out, or available, and half of them were not before; one message, no reminders',
    publication_behind: `more than ${rules.backlog} documents have waited for publication for five minutes`,
    cache_differs: 'the cache differed from the database within the last hour',
  };
}

/** The kinds of the core. Features add kinds. */
export const ALERT_KINDS = Object.keys(rulesInWords(DEFAULT_RULES));

const webhookShape = (kind: z.ZodType<string>) =>
  z.strictObject({
    id: z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be lower-case letters, digits and dashes')
      .describe('name of the webhook in logs and commands'),
    urlEnv: variable.describe('environment variable with the address'),
    secretEnv: variable.optional().describe('environment variable with the signing secret (whsec_…)'),
    format: z
      .enum(['standard', 'slack'])
      .default('standard')
      .describe('standard: JSON, signed as in standardwebhooks.com; slack: text'),
    kinds: z.array(kind).min(1).optional().describe('kinds of alerts that it receives; all unless given'),
  });

const alertShape = (kind: z.ZodType<string>) =>
  z
    .strictObject({
      webhooks: z.array(webhookShape(kind)).default([]).describe('receivers of alerts'),
      failuresInRow: z
        .int()
        .min(1)
        .max(1000)
        .default(DEFAULT_RULES.failuresInRow)
        .describe('failed runs in a row that open an alert'),
      priceRatio: z
        .number()
        .gt(1)
        .default(DEFAULT_RULES.priceRatio)
        .describe('an alert opens if a price moves by more than this factor'),
      backlog: z
        .int()
        .min(1)
        .default(DEFAULT_RULES.backlog)
        .describe('an alert opens if more documents than this wait to be published'),
      repeatHours: z
        .int()
        .min(1)
        .max(8760)
        .default(DEFAULT_RULES.repeatHours)
        .describe('hours between reminders of an open alert'),
    })
    .optional()
    .describe('limits at which alerts open, and webhooks that receive them');

export const ALERT_SECTION = {
  name: 'alerts',
  /** @param kinds of all conditions that features find */
  shape: (kinds: readonly string[]) => alertShape(z.enum([...ALERT_KINDS, ...kinds])),
};

/** Parses the section of a read configuration, whose kinds are checked already. */
const checkedShape = alertShape(z.string());

export const alertRules = (config: WithSections): AlertRules => readAlertRules(config, []);

export function alertProblems(config: WithSections): string[] {
  const problems: string[] = [];
  readAlertRules(config, problems);
  return problems;
}

function readAlertRules({ settings, sections }: WithSections, problems: string[]): AlertRules {
  const { environment: env } = settings;
  const entry = checkedShape.parse(sections[ALERT_SECTION.name]);
  const { webhooks: entries, ...limits } = entry ?? { ...DEFAULT_RULES, webhooks: [] };
  const file = `${settings.FLEETBOOK_CONFIG}: alerts`;
  const webhooks = entries.flatMap(({ id, urlEnv, secretEnv, format, kinds }): AlertReceiver[] => {
    const where = `${file}: webhook "${id}"`;
    const url = env[urlEnv] || undefined;
    if (url === undefined || !isHttpUrl(url)) {
      problems.push(
        `${where}: urlEnv names ${urlEnv}, which must be set to a URL that starts with http:// or https://`,
      );
      return [];
    }
    const text = secretEnv === undefined ? undefined : env[secretEnv] || undefined;
    if (secretEnv !== undefined && text === undefined)
      problems.push(`${where}: secretEnv names ${secretEnv}, which is not set`);
    const secret = secretOf(text, `${where}: ${secretEnv}`, problems);
    return [{ id, url, secret, format, kinds }];
  });
  for (const id of new Set(entries.map((each) => each.id)))
    if (entries.filter((each) => each.id === id).length > 1)
      problems.push(`${file}: webhook "${id}" is listed twice; give each webhook its own id`);
  const own = webhookOfTheEnvironment(env, problems);
  if (own && webhooks.some(({ id }) => id === own.id))
    problems.push(`${file}: webhook "${own.id}" has the id of ALERT_WEBHOOK_URL; give it another id`);
  return { ...limits, webhooks: [...(own ? [own] : []), ...webhooks], opsUrl: settings.OPS_URL };
}

function webhookOfTheEnvironment(env: Environment, problems: string[]): AlertReceiver | undefined {
  // The configuration reports a wrong value.
  const settings = valuesOf(ALERT_SETTINGS, env, []);
  const { ALERT_WEBHOOK_URL: url, ALERT_WEBHOOK_SECRET: text, ALERT_WEBHOOK_FORMAT: format } = settings;
  if (url === undefined) {
    if (text !== undefined)
      problems.push('ALERT_WEBHOOK_SECRET has no effect without ALERT_WEBHOOK_URL; set both');
    return undefined;
  }
  const secret = secretOf(text, 'ALERT_WEBHOOK_SECRET', problems);
  return { id: 'default', url, secret, format, kinds: undefined };
}

/** @param name of the setting, for the problem */
function secretOf(text: string | undefined, name: string, problems: string[]): Buffer | undefined {
  if (text === undefined) return undefined;
  const secret = readSecret(text);
  if (secret === undefined)
    problems.push(
      `${name} must be ${SECRET_FORM}, e.g. what this prints: echo "whsec_$(openssl rand -base64 32)"`,
    );
  return secret;
}
