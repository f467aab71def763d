/** What webhooks are sent. */
import { createHmac } from 'node:crypto';
import type { HeldSampleRow } from '../../domain/held-sample.ts';
import { actionOf } from './action.ts';
import type { AlertChanges, AlertRow, NewDelivery } from './deliveries.ts';
import type { AlertRules, Webhook } from './rules.ts';

/** The body of a message in the format `standard`, as standardwebhooks.com asks: type, time and data. */
export interface AlertMessage {
  readonly type: 'alerts.opened' | 'alerts.repeated' | 'alerts.resolved' | 'alerts.test';
  /** RFC 3339: when it was found. */
  readonly timestamp: string;
  readonly data: { readonly alerts: readonly MessageAlert[] };
}

export interface MessageAlert {
  readonly id: number;
  readonly kind: string;
  readonly subject: string;
  readonly summary: string;
  readonly details: unknown;
  readonly opened_at: string;
  readonly resolved_at: string | null;
  readonly resolution: string | null;
  /** The page of the console about it; null where OPS_URL is not set. */
  readonly url: string | null;
  /** The command that shows what it is about. */
  readonly command: string;
}

/** One message for each webhook and type, which holds all its alerts: many alerts make one message. */
export function messagesFor(
  { webhooks, opsUrl }: Pick<AlertRules, 'webhooks' | 'opsUrl'>,
  changes: AlertChanges,
  now: Date,
  newId: () => string,
): NewDelivery[] {
  const timestamp = now.toISOString();
  return webhooks.flatMap(({ id, kinds }) => {
    const wanted = (rows: readonly AlertRow[]) =>
      rows
        .filter(({ kind }) => kinds === undefined || kinds.some((each) => each === kind))
        .map((row) => messageAlert(row, opsUrl));
    const types = [
      ['alerts.resolved', wanted(changes.resolved)],
      ['alerts.opened', wanted(changes.opened)],
      ['alerts.repeated', wanted(changes.repeated)],
    ] as const;
    return types
      .filter(([, alerts]) => alerts.length > 0)
      .map(([type, alerts]): NewDelivery => {
        const body: AlertMessage = { type, timestamp, data: { alerts } };
        return { webhook: id, messageId: newId(), body };
      });
  });
}

export function testMessage(now: Date): AlertMessage {
  return { type: 'alerts.test', timestamp: now.toISOString(), data: { alerts: [] } };
}

function messageAlert(
  { id, kind, subject, summary, details, openedAt, resolvedAt, resolution }: AlertRow,
  opsUrl: string | undefined,
): MessageAlert {
  const { path, command } = actionOf(kind, subject, details);
  return {
    id,
    kind,
    subject,
    summary,
    details,
    opened_at: rfc3339(openedAt),
    resolved_at: resolvedAt && rfc3339(resolvedAt),
    resolution,
    url: opsUrl === undefined ? null : new URL(path, opsUrl).href,
    command,
  };
}

const rfc3339 = (instant: string): string => new Date(instant).toISOString();

/** The text of the request's body. */
export function bodyText(message: AlertMessage, format: Webhook['format']): string {
  if (format === 'slack') return JSON.stringify({ text: slackText(message) });
  return JSON.stringify({ ...message, data: { alerts: withRows(message.data.alerts, ROWS_IN_MESSAGE) } });
}

const TITLES: Readonly<Record<AlertMessage['type'], string>> = {
  'alerts.opened': 'Fleetbook: new alert',
  'alerts.repeated': 'Fleetbook: still open',
  'alerts.resolved': 'Fleetbook: resolved',
  'alerts.test': 'Fleetbook: this is a test; alerts arrive here',
};

/** What the details of an alert may have: rows of a held batch, and how many there are besides. */
interface Rows {
  readonly rows: readonly HeldSampleRow[];
  readonly more: number;
}

/** Rows of all alerts of one message, at most. */
const ROWS_IN_MESSAGE = 100;
const ROWS_IN_TEXT = 20;

const hasRows = (details: unknown): details is Rows =>
  typeof details === 'object' && details !== null && 'rows' in details && 'more' in details;

/** Gives each alert its share of `most` rows; those that are left out count as `more`. */
function withRows(alerts: readonly MessageAlert[], most: number): readonly MessageAlert[] {
  const share = Math.floor(most / Math.max(1, alerts.filter(({ details }) => hasRows(details)).length));
  return alerts.map((alert) => {
    const { details } = alert;
    if (!hasRows(details) || details.rows.length <= share) return alert;
    const rows = details.rows.slice(0, share);
    return { ...alert, details: { ...details, rows, more: details.more + details.rows.length - share } };
  });
}

/** More alerts than this are counted instead of shown. */
const MOST_ALERTS = 20;

function slackText({ type, data: { alerts } }: AlertMessage): string {
  const shown = withRows(alerts.slice(0, MOST_ALERTS), ROWS_IN_TEXT);
  const lines = shown.flatMap(({ summary, resolution, resolved_at, details, url, command }) => [
    `• ${slackEscaped(summary)}${resolution === null ? '' : ` – ${slackEscaped(resolution)}`}`,
    // A resolved alert needs neither its rows nor an action.
    ...(resolved_at === null && hasRows(details) ? rowLines(details) : []),
    ...(resolved_at === null || type === 'alerts.opened' ? [actionLine(url, command)] : []),
  ]);
  const more = alerts.length - shown.length;
  return [`*${TITLES[type]}*`, ...lines, ...(more > 0 ? [`… ${more} more`] : [])].join('\n');
}

/** A message that an earlier release has stored has neither. */
const actionLine = (url: string | null | undefined, command: string | undefined): string =>
  slackEscaped(`    ${[url, command && `\`${command}\``].filter(Boolean).join(' · ')}`).trimEnd();

/** `    price cx31 in fsn1: 0.03 EUR/hour → 3 EUR/hour` */
function rowLines({ rows, more }: Rows): string[] {
  const lines = rows.map(({ change, name, place, before, after }) => {
    const values = [before, after].filter((value) => value !== null).join(' → ');
    return `    ${change} ${name} in ${place}${values === '' ? '' : `: ${values}`}`;
  });
  return [...lines, ...(more > 0 ? [`    … ${more} more`] : [])].map(slackEscaped);
}

/** Slack's own three, and nothing of an upstream's may become a mention or a link. */
const slackEscaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** The header fields of standardwebhooks.com. @param at seconds since the epoch */
export function signedHeaders(
  messageId: string,
  at: number,
  body: string,
  secret: Buffer,
): Record<string, string> {
  const signature = createHmac('sha256', secret).update(`${messageId}.${at}.${body}`).digest('base64');
  return { 'webhook-id': messageId, 'webhook-timestamp': String(at), 'webhook-signature': `v1,${signature}` };
}
