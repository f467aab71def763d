/** Reads when and where operators are told of what is wrong. */

import { isHttpUrl } from '../../config/http-url.ts';
import type { Settings } from '../../config/settings.ts';
import type { Environment } from '../../config/source-config.ts';
import type { AlertEntry } from '../../config/sources-file.ts';
import { type AlertRules, NO_ALERTS, type Webhook } from './rules.ts';

/** The webhook that the environment alone configures. */
const OF_THE_ENVIRONMENT = 'default';
/** Bytes of a signing secret, by standardwebhooks.com. */
const SECRET_BYTES = { least: 24, most: 64 };

/** Everything that is wrong is added to `problems`, a line each. */
export function readAlertRules(
  env: Environment,
  settings: Settings,
  entry: AlertEntry | undefined,
  problems: string[],
): AlertRules {
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
  const own = webhookOfTheEnvironment(settings, problems);
  if (own && webhooks.some(({ id }) => id === own.id))
    problems.push(`${file}: webhook "${own.id}" is that of ALERT_WEBHOOK_URL; give it another id`);
  return { ...limits, webhooks: [...(own ? [own] : []), ...webhooks], opsUrl: settings.OPS_URL };
}

function webhookOfTheEnvironment(settings: Settings, problems: string[]): Webhook | undefined {
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
