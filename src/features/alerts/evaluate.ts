/** Finds what is wrong, and writes down who is to be told of it. */
import { randomUUID } from 'node:crypto';
import type { ClientDatabase } from '../../db/connection/database.ts';
import type { Condition } from '../../domain/alert.ts';
import { findConditions, findMoves, type WatchedSource } from './conditions.ts';
import { type AlertChanges, reconcileAlerts } from './deliveries.ts';
import { messagesFor } from './message.ts';
import type { AlertRules } from './rules.ts';

/**
 * Compares what is wrong now with the open alerts: new ones open, those that are over resolve. What webhooks are told is
 * written in the same transaction.
 * @param findMore finds what features report
 * @returns undefined when another worker does the same right now
 */
export async function evaluateAlerts(
  db: ClientDatabase,
  sources: readonly WatchedSource[],
  rules: AlertRules,
  now: Date,
  findMore: () => Promise<readonly Condition[]> = async () => [],
): Promise<AlertChanges | undefined> {
  const sql = db.$client;
  const find = async () => {
    const [lasting, more, events] = await Promise.all([
      findConditions(sql, sources, rules, now),
      findMore(),
      findMoves(sql, rules),
    ]);
    return { lasting: [...lasting, ...more].map(keyed), events: events.map(keyed) };
  };
  return reconcileAlerts(db, find, rules.repeatHours, (changes) =>
    messagesFor(rules, changes, now, newMessageId),
  );
}

export const newMessageId = (): string => `msg_${randomUUID().replaceAll('-', '')}`;

/** A large catalogue takes a minute to be published, which is nobody's trouble. */
const BACKLOG_LASTS_SECONDS = 300;

const keyed = (condition: Condition) => ({
  ...condition,
  key: `${condition.kind}:${condition.subject}`,
  lastsSeconds: condition.kind === 'publication_behind' ? BACKLOG_LASTS_SECONDS : 0,
});
