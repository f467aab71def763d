/** What webhooks are sent. */
import { createHmac } from 'node:crypto';
import type { AlertChanges, AlertRow, NewDelivery } from '../db/queries/alerts.ts';
import type { HeldSampleRow } from '../domain/held-sample.ts';
import type { Webhook } from './rules.ts';

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
}

/** One message for each webhook and type, with all alerts that it is to be told of: a storm is one message. */
export function messagesFor(
  webhooks: readonly Webhook[],
  changes: AlertChanges,
  now: Date,
  newId: () => string,
): NewDelivery[] {
  const timestamp = now.toISOString();
  return webhooks.flatMap(({ id, kinds }) => {
    const wanted = (rows: readonly AlertRow[]) =>
      rows.filter(({ kind }) => kinds === undefined || kinds.some((each) => each === kind)).map(messageAlert);
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

function messageAlert({
  id,
  kind,
  subject,
  summary,
  details,
  openedAt,
  resolvedAt,
  resolution,
}: AlertRow): MessageAlert {
  return {
    id,
    kind,
    subject,
    summary,
    details,
    opened_at: rfc3339(openedAt),
    resolved_at: resolvedAt && rfc3339(resolvedAt),
    resolution,
  };
}

const rfc3339 = (instant: string): string => new Date(instant).toISOString();

/** The text of the request's body. */
export function bodyText(message: AlertMessage, format: Webhook['format']): string {
  if (format === 'slack') return JSON.stringify({ text: slackText(message) });
  return JSON.stringify({ ...message, data: { alerts: withRows(message.data.alerts, ROWS_IN_MESSAGE) } });
}

const TITLES: Readonly<Record<AlertMessage['type'], string>> = {
  'alerts.opened': 'Fleetbook: something needs a look',
  'alerts.repeated': 'Fleetbook: still open',
  'alerts.resolved': 'Fleetbook: resolved',
  'alerts.test': 'Fleetbook: this is a test; alerts will arrive here',
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
  const lines = shown.flatMap(({ summary, resolution, details }) => [
    `• ${slackEscaped(summary)}${resolution === null ? '' : ` – ${slackEscaped(resolution)}`}`,
    // Of one that is over nobody has to decide about its rows any more.
    ...(resolution === null && hasRows(details) ? rowLines(details) : []),
  ]);
  const more = alerts.length - shown.length;
  return [`*${TITLES[type]}*`, ...lines, ...(more > 0 ? [`… ${more} more`] : [])].join('\n');
}

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
