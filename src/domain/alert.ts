/** Alerts: the conditions that open them, and what an operator acknowledges. */
import { span } from './text/time-span.ts';

/** A lasting problem. Its alert opens when a check finds it, and resolves when a check no longer does. */
export interface Condition {
  readonly kind: string;
  /** The object that is wrong. Kind and subject together identify an alert. */
  readonly subject: string;
  readonly summary: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** An operator's acknowledgement: webhooks get no reminder of the alert. */
export interface Acknowledgement {
  /** RFC 3339. */
  readonly at: string;
  readonly by: string;
  readonly reason: string;
  /** The end of a snooze, RFC 3339; null for an acknowledgement that lasts until the alert ends. */
  readonly until: string | null;
}

/** A stored alert. All instants are RFC 3339. */
export interface AlertRecord {
  readonly id: number;
  readonly kind: string;
  readonly subject: string;
  readonly summary: string;
  readonly details: unknown;
  readonly openedAt: string;
  readonly resolvedAt: string | null;
  readonly resolution: string | null;
  /** The acknowledgement that is in force, or was when the alert ended. Null for none, and after a snooze. */
  readonly acknowledgement: Acknowledgement | null;
}

export interface OpenAlert {
  readonly id: number;
  readonly kind: string;
  readonly subject: string;
  /** Id of the affected source; undefined for an alert about Fleetbook itself. */
  readonly source: string | undefined;
  readonly summary: string;
  /** Null for an alert that no operator has acknowledged. */
  readonly acknowledgement: Acknowledgement | null;
}

/** The kinds of alerts about a source. All others are about Fleetbook itself. */
export const KINDS_ABOUT_SOURCES = [
  'batch_held',
  'source_stale',
  'region_stale',
  'source_failing',
  'source_paused',
  'sold_out',
  'prices_moved',
  'stock_flipped',
  'machine_retiring',
] as const;

export type KindAboutSource = (typeof KINDS_ABOUT_SOURCES)[number];

export const isAboutSource = (kind: string): kind is KindAboutSource =>
  (KINDS_ABOUT_SOURCES as readonly string[]).includes(kind);

/** Returns the id of the alert's source; undefined for an alert about Fleetbook itself. */
export function sourceOfAlert({ kind, subject }: Pick<Condition, 'kind' | 'subject'>): string | undefined {
  // The subject of a region is `hetzner/fsn1`, that of a machine `azure/eastus/Standard_D1`, that of a run `hetzner#12`.
  return isAboutSource(kind) ? subject.split(/[/#]/)[0] : undefined;
}

/** `acknowledged by ada 2 h ago: the provider repairs it`, or `snoozed by ada until 2026-01-31 12:05 UTC: …`. */
export function acknowledgementText({ at, by, reason, until }: Acknowledgement, now: Date): string {
  if (until !== null) return `snoozed by ${by} until ${until.slice(0, 16).replace('T', ' ')} UTC: ${reason}`;
  const seconds = Math.max(0, (now.getTime() - Date.parse(at)) / 1000);
  return `acknowledged by ${by} ${span(seconds)} ago: ${reason}`;
}
