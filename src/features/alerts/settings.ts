/** Reads the rules of alerts and the webhooks from the environment and from the file of sources. */

import { z } from 'zod';
import type { FeatureSection } from '../../app/feature.ts';
import type { Environment, WithSections } from '../../config/config.ts';
import { isHttpUrl } from '../../config/http-url.ts';
import { oneOf, text, url } from '../../config/setting-values.ts';
import { type SettingDefinitions, secret, setting, valuesOf } from '../../config/settings.ts';
import { variable } from '../../config/variable-name.ts';
import { ALERT_KINDS, type AlertRules, NO_ALERTS, type Webhook } from './rules.ts';

export const ALERT_SETTINGS = {
  ALERT_WEBHOOK_URL: secret(
    setting('address that is told of what is wrong, see docs/alerts.md; unset: none', url('http', 'https')),
  ),
  ALERT_WEBHOOK_SECRET: secret(
    setting('signing secret of that webhook, whsec_ and base64; unset: messages are not signed', text),
  ),
  ALERT_WEBHOOK_FORMAT: setting(
    'standard: JSON, as standardwebhooks.com says; slack: a text, also for Mattermost',
    oneOf('standard', 'slack'),
    'standard',
  ),
} satisfies SettingDefinitions;

/** A secret, and an address that holds one, are named and never written there. */
const webhookShape = (kind: z.ZodType<string>) =>
  z.strictObject({
    id: z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be lower-case letters, digits and dashes')
      .describe('names the webhook in logs and in commands'),
    urlEnv: variable.describe('name of the variable that holds the address'),
    secretEnv: variable.optional().describe('name of the variable that holds the signing secret (whsec_…)'),
    format: z
      .enum(['standard', 'slack'])
      .default('standard')
      .describe('standard: JSON, signed as standardwebhooks.com says; slack: a text'),
    kinds: z.array(kind).min(1).optional().describe('what it is told of; all kinds when absent'),
  });

const alertShape = (kind: z.ZodType<string>) =>
  z
    .strictObject({
      webhooks: z.array(webhookShape(kind)).default([]).describe('who is told'),
      failuresInRow: z
        .int()
        .min(1)
        .max(1000)
        .default(NO_ALERTS.failuresInRow)
        .describe('so many failed runs in a row are an alert'),
      priceRatio: z
        .number()
        .gt(1)
        .default(NO_ALERTS.priceRatio)
        .describe('a price that moves by more than this factor is an alert'),
      backlog: z
        .int()
        .min(1)
        .default(NO_ALERTS.backlog)
        .describe('more documents than this that wait to be published are an alert'),
      repeatHours: z
        .int()
        .min(1)
        .max(8760)
        .default(NO_ALERTS.repeatHours)
        .describe('hours after which an open alert is told again'),
    })
    .optional()
    .describe('when operators are told of what is wrong, and where');

export const ALERT_SECTION: FeatureSection = {
  name: 'alerts',
  shape: (kinds) => alertShape(z.enum([...ALERT_KINDS, ...kinds])),
};

/** The section as the configuration holds it: the kinds are checked. */
const checkedShape = alertShape(z.string());

/** Returns the rules. A webhook that is configured wrongly is left out. */
export const alertRules = (config: WithSections): AlertRules => readAlertRules(config, []);

/** Returns what is wrong with the rules, a line each. */
export function alertProblems(config: WithSections): string[] {
  const problems: string[] = [];
  readAlertRules(config, problems);
  return problems;
}

/** The webhook that the environment alone configures. */
const OF_THE_ENVIRONMENT = 'default';
/** Bytes of a signing secret, by standardwebhooks.com. */
const SECRET_BYTES = { least: 24, most: 64 };

function readAlertRules({ settings, sections }: WithSections, problems: string[]): AlertRules {
  const { environment: env } = settings;
  const entry = checkedShape.parse(sections[ALERT_SECTION.name]);
  const { webhooks: entries, ...limits } = entry ?? { ...NO_ALERTS, webhooks: [] };
  const file = `${settings.FLEETBOOK_CONFIG}: alerts`;
  const webhooks = entries.flatMap(({ id, urlEnv, secretEnv, format, kinds }): Webhook[] => {
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
    const secret = text === undefined ? undefined : readSecret(text);
    if (secret === null) problems.push(`${where}: ${secretEnv} ${SECRET_REMEDY}`);
    return [{ id, url, secret: secret ?? undefined, format, kinds }];
  });
  for (const id of new Set(entries.map((each) => each.id)))
    if (entries.filter((each) => each.id === id).length > 1)
      problems.push(`${file}: webhook "${id}" is there twice`);
  const own = webhookOfTheEnvironment(env, problems);
  if (own && webhooks.some(({ id }) => id === own.id))
    problems.push(`${file}: webhook "${own.id}" is that of ALERT_WEBHOOK_URL; give it another id`);
  return { ...limits, webhooks: [...(own ? [own] : []), ...webhooks], opsUrl: settings.OPS_URL };
}

function webhookOfTheEnvironment(env: Environment, problems: string[]): Webhook | undefined {
  // The configuration reports a setting whose value is wrong.
  const settings = valuesOf(ALERT_SETTINGS, env, []);
  const { ALERT_WEBHOOK_URL: url, ALERT_WEBHOOK_SECRET: text, ALERT_WEBHOOK_FORMAT: format } = settings;
  if (url === undefined) {
    if (text !== undefined)
      problems.push('ALERT_WEBHOOK_SECRET has no use without ALERT_WEBHOOK_URL; set both');
    return undefined;
  }
  const secret = text === undefined ? undefined : readSecret(text);
  if (secret === null) problems.push(`ALERT_WEBHOOK_SECRET ${SECRET_REMEDY}`);
  return { id: OF_THE_ENVIRONMENT, url, secret: secret ?? undefined, format, kinds: undefined };
}

const SECRET_REMEDY = `must be whsec_ and the base64 of ${SECRET_BYTES.least} to ${SECRET_BYTES.most} bytes, e.g. what this prints: echo "whsec_$(openssl rand -base64 32)"`;

/** Null for a text that is no secret. */
function readSecret(text: string): Buffer | null {
  const [, base64] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  const bytes = Buffer.from(base64 ?? '', 'base64');
  return bytes.length >= SECRET_BYTES.least && bytes.length <= SECRET_BYTES.most ? bytes : null;
}
