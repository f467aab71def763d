/** Who receives messages: the operators' configured receivers, and the stored webhooks of organizations. */
import { audit } from '../../db/audit.ts';
import type { Database } from '../../db/connection/connect.ts';
import { and, eq, getTableColumns, isNotNull, isNull, sql } from '../../db/connection/drizzle.ts';
import { array, type RowOf, rfc3339 } from '../../db/connection/statements.ts';
import type { Organization } from '../../db/organizations.ts';
import { IS_LISTED } from '../../db/published-rows.ts';
import { feedHead, machines, messages, organizations, organizationWebhooks } from '../../db/schema.ts';
import type { Decider } from '../../domain/operator.ts';
import { type AlertMessage, bodyText, testMessage } from './alert-messages.ts';
import type { RecipientAddress } from './deliver.ts';
import type { WebhookEvent, WebhookMessage } from './events.ts';
import { isWaiting, newMessageId } from './messages.ts';
import type { AlertReceiver } from './rules.ts';
import { newSecret, send } from './send.ts';

export const operatorsRecipient = (receiver: AlertReceiver): RecipientAddress => ({
  to: { receiver: receiver.id },
  url: receiver.url,
  secret: receiver.secret,
  textOf: (body) => bodyText(body as AlertMessage, receiver.format),
});

export const organizationsRecipient = ({ id, url, secret }: StoredWebhook): RecipientAddress => ({
  to: { webhook: id },
  url,
  secret,
  textOf: JSON.stringify,
});

/** Sends a message without an alert at once. @returns the error if the receiver does not accept it */
export async function testReceiver(
  db: Database,
  receiver: AlertReceiver,
  decider: Decider,
): Promise<string | undefined> {
  // A receiver gets a message only after the test's row is committed.
  await audit(db, decider, { action: 'alert.test', subject: { kind: 'webhook', id: receiver.id } });
  const now = new Date();
  return sendNow(operatorsRecipient(receiver), testMessage(now), now);
}

/** Sends a message without an event at once. @returns the error if the receiver does not accept it */
export async function testWebhook(
  db: Database,
  webhook: StoredWebhook,
  { slug }: Organization,
  decider: Decider,
): Promise<string | undefined> {
  await auditWebhook(db, decider, 'webhook.test', webhook.id, { organization: slug });
  const now = new Date();
  const body: WebhookMessage = {
    type: 'webhook.test',
    timestamp: now.toISOString(),
    data: { organization: slug },
  };
  return sendNow(organizationsRecipient(webhook), body, now);
}

const sendNow = (recipient: RecipientAddress, body: object, now: Date): Promise<string | undefined> =>
  send(recipient, { messageId: newMessageId(), body: recipient.textOf(body) }, now.getTime());

/** An organization's webhooks cost every check, so their number is limited. */
export const MOST_WEBHOOKS = 20;

export interface NewWebhook {
  readonly url: URL;
  readonly events: readonly WebhookEvent[];
  /** Of the event `savings`, a plain decimal per month. */
  readonly threshold?: string | undefined;
  /** Of the event `restocked`: machines that a catalogue lists, see `unlistedOf`. */
  readonly machines?: readonly number[] | undefined;
}

/** The transaction of each change of a webhook writes a row, which holds no secret. */
const auditWebhook = (
  db: Database,
  decider: Decider,
  action: `webhook.${string}`,
  id: number,
  details: { readonly organization: string },
): Promise<void> => audit(db, decider, { action, subject: { kind: 'organization_webhook', id }, details });

/** @returns the webhook's id and secret; undefined if the organization has as many as it may have */
export async function addWebhook(
  db: Database,
  { id: organizationId, slug }: Organization,
  { url, events, threshold, machines: machineIds }: NewWebhook,
  decider: Decider,
): Promise<{ readonly id: number; readonly secret: Buffer } | undefined> {
  const secret = newSecret();
  return db.transaction(async (tx) => {
    // Two commands count one after the other.
    await tx.execute(
      sql`select from ${organizations} where ${organizations.id} = ${organizationId} for update`,
    );
    const isOwn = eq(organizationWebhooks.organizationId, organizationId);
    if ((await tx.$count(organizationWebhooks, isOwn)) >= MOST_WEBHOOKS) return undefined;
    const [row] = await tx
      .insert(organizationWebhooks)
      .values({
        organizationId,
        url: url.href,
        secret,
        events: [...events],
        threshold: threshold ?? null,
        machineIds: machineIds ? [...machineIds] : null,
        // Earlier changes are no events.
        position: sql`(select ${feedHead.position} from ${feedHead})`,
      })
      .returning({ id: organizationWebhooks.id });
    if (!row) throw new Error('unreachable: the row is inserted');
    const details = {
      organization: slug,
      origin: url.origin,
      events,
      threshold: threshold ?? null,
      ...(machineIds && { machines: machineIds }),
    };
    await auditWebhook(tx, decider, 'webhook.add', row.id, details);
    return { id: row.id, secret };
  });
}

/** Returns the first of the ids that no catalogue lists, or ever listed. A machine that only clusters name is unknown to other organizations. */
export async function unlistedOf(db: Database, ids: readonly number[]): Promise<number | undefined> {
  const rows = await db.execute<RowOf<{ id: number }>>(sql`
    select id from unnest(${array(ids, 'integer')}) with ordinality named (id, n)
    where not exists (select from ${machines} m where m.id = named.id and ${sql.raw(IS_LISTED)})
    order by n limit 1`);
  return rows[0]?.id;
}

/** Returns webhooks without their secrets and the paths of their addresses, which may hold another one. */
export async function listWebhooks(db: Database, organizationId: number) {
  const own = eq(messages.webhook, organizationWebhooks.id);
  const rows = await db
    .select({
      id: organizationWebhooks.id,
      url: organizationWebhooks.url,
      events: organizationWebhooks.events,
      threshold: organizationWebhooks.threshold,
      machines: organizationWebhooks.machineIds,
      createdAt: sql<string>`${rfc3339(organizationWebhooks.createdAt)}`,
      waiting: sql<number>`(select count(*)::int from ${messages} where ${own} and ${isWaiting})`,
      deliveredAt: sql<
        string | null
      >`(select ${rfc3339(sql`max(${messages.deliveredAt})`)} from ${messages} where ${own})`,
      lastError: sql<string | null>`(
        select ${messages.lastError} from ${messages} where ${own} and ${isNotNull(messages.lastError)}
        order by ${messages.id} desc limit 1)`,
    })
    .from(organizationWebhooks)
    .where(eq(organizationWebhooks.organizationId, organizationId))
    .orderBy(organizationWebhooks.id);
  return rows.map(({ url, ...row }) => ({ ...row, origin: new URL(url).origin }));
}

const isOf = (id: number, organizationId: number) =>
  and(eq(organizationWebhooks.id, id), eq(organizationWebhooks.organizationId, organizationId));

/** @returns false if the organization has no such webhook */
export async function removeWebhook(
  db: Database,
  { id: organizationId, slug }: Organization,
  id: number,
  decider: Decider,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const { count } = await tx.delete(organizationWebhooks).where(isOf(id, organizationId));
    if (count === 0) return false;
    await auditWebhook(tx, decider, 'webhook.remove', id, { organization: slug });
    return true;
  });
}

export type StoredWebhook = typeof organizationWebhooks.$inferSelect;

/** Returns a webhook of an organization that is not deleted. */
export async function findWebhook(
  db: Database,
  id: number,
  organizationId?: number,
): Promise<StoredWebhook | undefined> {
  const condition = organizationId === undefined ? eq(organizationWebhooks.id, id) : isOf(id, organizationId);
  const [row] = await db
    .select(getTableColumns(organizationWebhooks))
    .from(organizationWebhooks)
    .innerJoin(organizations, eq(organizations.id, organizationWebhooks.organizationId))
    .where(and(condition, isNull(organizations.deletedAt)));
  return row;
}

/** Returns the webhooks of all organizations that are not deleted. */
export async function allWebhooks(db: Database): Promise<number[]> {
  const rows = await db.execute<RowOf<{ id: number }>>(sql`
    select ${organizationWebhooks.id} from ${organizationWebhooks}
    join ${organizations} on ${organizations.id} = ${organizationWebhooks.organizationId}
    where ${organizations.deletedAt} is null order by ${organizationWebhooks.id}`);
  return rows.map(({ id }) => id);
}

/** Deletes the webhooks of deleted organizations, with their secrets and messages. */
export async function pruneWebhooks(db: Database): Promise<void> {
  await db.execute(sql`
    delete from ${organizationWebhooks} using ${organizations}
    where ${organizations.id} = ${organizationWebhooks.organizationId} and ${organizations.deletedAt} is not null`);
}
