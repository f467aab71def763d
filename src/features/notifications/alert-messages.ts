/** What receivers of the operators read about alerts. */
import type { alerts } from '../../db/schema.ts';
import { type Condition, isAboutSource, type KindAboutSource, sourceOfAlert } from '../../domain/alert.ts';
import type { HeldSampleRow } from '../../domain/held-sample.ts';
import type { NewMessage } from './messages.ts';
import type { AlertReceiver, AlertRules } from './rules.ts';

export type AlertRow = typeof alerts.$inferSelect;

export interface AlertChanges {
  readonly opened: readonly AlertRow[];
  /** Alerts that are due for a reminder, or whose snooze has ended. */
  readonly repeated: readonly AlertRow[];
  readonly resolved: readonly AlertRow[];
}

/** The body of a message in the format `standard`: type, time and data, as in standardwebhooks.com. */
export interface AlertMessage {
  readonly type: 'alerts.opened' | 'alerts.repeated' | 'alerts.resolved' | 'alerts.test';
  /** When the worker evaluated the alerts, RFC 3339. */
  readonly timestamp: string;
  readonly data: { readonly alerts: readonly MessageAlert[] };
}

export type MessageAlert = ReturnType<typeof messageAlert>;

/** Returns one message for each receiver and type. It contains all alerts of that type. */
export function messagesFor(
  { webhooks, opsUrl }: Pick<AlertRules, 'webhooks' | 'opsUrl'>,
  changes: AlertChanges,
  now: Date,
): NewMessage[] {
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
      .map(([type, alerts]) => {
        const body: AlertMessage = { type, timestamp, data: { alerts } };
        return { to: { receiver: id }, body };
      });
  });
}

export function testMessage(now: Date): AlertMessage {
  return { type: 'alerts.test', timestamp: now.toISOString(), data: { alerts: [] } };
}

function messageAlert(
  { id, kind, subject, summary, details, openedAt, resolvedAt, resolution }: AlertRow,
  opsUrl: string | undefined,
) {
  const { path, command } = actionOf({ kind, subject }, details);
  return {
    id,
    kind,
    subject,
    summary,
    details,
    opened_at: rfc3339(openedAt),
    resolved_at: resolvedAt && rfc3339(resolvedAt),
    resolution,
    /** The alert's page in the console; null without OPS_URL. */
    url: opsUrl === undefined ? null : new URL(path, opsUrl).href,
    command,
  };
}

const rfc3339 = (instant: string): string => new Date(instant).toISOString();

interface Action {
  /** A path of the console. */
  readonly path: string;
  readonly command: string;
}

interface Details {
  readonly batch?: number;
  readonly run?: number;
  readonly machine?: number;
  readonly name?: string;
}

const pageOf = (source: string) => `/sources/${encodeURIComponent(source)}`;
const showSource = (source: string): Action => ({
  path: pageOf(source),
  command: `fleetbook source show ${source}`,
});
const showRun = (_: string, { run }: Details): Action => ({
  path: `/runs/${run}`,
  command: `fleetbook run ${run}`,
});

const OF_FLEETBOOK: Action = { path: '/alerts', command: 'fleetbook doctor' };

const ACTIONS: Readonly<Record<KindAboutSource, (source: string, details: Details) => Action>> = {
  batch_held: (source, { batch }) => ({
    path: batch === undefined ? '/held' : `/held/${batch}`,
    command: `fleetbook hold show ${source}`,
  }),
  source_stale: showSource,
  region_stale: showSource,
  source_failing: showSource,
  source_paused: showSource,
  sold_out: (source) => ({
    path: `${pageOf(source)}?show=excluded`,
    command: `fleetbook excluded ${source}`,
  }),
  prices_moved: showRun,
  stock_flipped: showRun,
  machine_retiring: (_, { machine, name }) => ({
    path: `/machines/${machine}`,
    command: `fleetbook machines ${name}`,
  }),
};

/** Returns the page and the command that solve the alert. */
export function actionOf(alert: Pick<Condition, 'kind' | 'subject'>, details: unknown): Action {
  const { kind, subject } = alert;
  if (kind === 'version_ending') return { path: '/lifecycle', command: 'fleetbook alert list' };
  if (!isAboutSource(kind)) return OF_FLEETBOOK;
  return ACTIONS[kind](sourceOfAlert(alert) ?? subject, (details ?? {}) as Details);
}

export function bodyText(message: AlertMessage, format: AlertReceiver['format']): string {
  if (format === 'slack') return JSON.stringify({ text: slackText(message) });
  return JSON.stringify({ ...message, data: { alerts: withRows(message.data.alerts, ROWS_IN_MESSAGE) } });
}

const TITLES: Readonly<Record<AlertMessage['type'], string>> = {
  'alerts.opened': 'Fleetbook: new alert',
  'alerts.repeated': 'Fleetbook: still open',
  'alerts.resolved': 'Fleetbook: resolved',
  'alerts.test': 'Fleetbook: this is a test; alerts arrive here',
};

interface Rows {
  readonly rows: readonly HeldSampleRow[];
  readonly more: number;
}

const ROWS_IN_MESSAGE = 100;
const ROWS_IN_TEXT = 20;

const hasRows = (details: unknown): details is Rows =>
  typeof details === 'object' && details !== null && 'rows' in details && 'more' in details;

/** Gives each alert an equal share of `most` rows, and adds the number of omitted rows to `more`. */
function withRows(alerts: readonly MessageAlert[], most: number): readonly MessageAlert[] {
  const share = Math.floor(most / Math.max(1, alerts.filter(({ details }) => hasRows(details)).length));
  return alerts.map((alert) => {
    const { details } = alert;
    if (!hasRows(details) || details.rows.length <= share) return alert;
    const rows = details.rows.slice(0, share);
    return { ...alert, details: { ...details, rows, more: details.more + details.rows.length - share } };
  });
}

const MOST_ALERTS = 20;

function slackText({ type, data: { alerts } }: AlertMessage): string {
  const shown = withRows(alerts.slice(0, MOST_ALERTS), ROWS_IN_TEXT);
  const lines = shown.flatMap(({ summary, resolution, resolved_at, details, url, command }) => [
    `• ${slackEscaped(summary)}${resolution === null ? '' : ` – ${slackEscaped(resolution)}`}`,
    // A resolved alert needs neither rows nor an action. An event opens and resolves at once, so its opening has an action.
    ...(resolved_at === null && hasRows(details) ? rowLines(details) : []),
    ...(resolved_at === null || type === 'alerts.opened' ? [actionLine(url, command)] : []),
  ]);
  const more = alerts.length - shown.length;
  return [`*${TITLES[type]}*`, ...lines, ...(more > 0 ? [`… ${more} more`] : [])].join('\n');
}

const actionLine = (url: string | null, command: string): string =>
  slackEscaped(`    ${url === null ? '' : `${url} · `}\`${command}\``);

/** `    price cx31 in fsn1: 0.03 EUR/hour → 3 EUR/hour` */
function rowLines({ rows, more }: Rows): string[] {
  const lines = rows.map(({ change, name, place, before, after }) => {
    const values = [before, after].filter((value) => value !== null).join(' → ');
    return `    ${change} ${name} in ${place}${values === '' ? '' : `: ${values}`}`;
  });
  return [...lines, ...(more > 0 ? [`    … ${more} more`] : [])].map(slackEscaped);
}

/** Escapes the three characters of Slack's syntax, so that text of an upstream becomes no mention and no link. */
const slackEscaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
