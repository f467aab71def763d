/** Finds the events of a webhook, and stores their messages in the same transaction as what it has seen. */
import { type ClientDatabase, type Database, transactionOn } from '../../db/connection/database.ts';
import { and, eq, isNull, sql } from '../../db/connection/drizzle.ts';
import { storedCurrency } from '../../db/prices/currency.ts';
import { organizations, organizationWebhooks, type SeenState, webhookMessages } from '../../db/schema.ts';
import { changedClusters } from './changed-clusters.ts';
import { changedPrices } from './changed-prices.ts';
import type { WebhookMessage } from './events.ts';
import { flippedStock } from './flipped-stock.ts';
import { possibleSavings } from './possible-savings.ts';
import { newMessageId } from './send.ts';

/**
 * Messages that may wait for one receiver. A webhook with more is not checked until some are delivered or given up, so its
 * events wait where they are stored anyway.
 */
export const MOST_WAITING = 100;
const ROWS_PER_MESSAGE = 500;

type Content = Pick<WebhookMessage, 'type' | 'data'>;

/** @returns the number of new messages */
export async function checkWebhook(db: ClientDatabase, id: number, now: Date): Promise<number> {
  return transactionOn(db, async (tx) => {
    const [found] = await tx
      .select({ webhook: organizationWebhooks, slug: organizations.slug })
      .from(organizationWebhooks)
      .innerJoin(organizations, eq(organizations.id, organizationWebhooks.organizationId))
      .where(and(eq(organizationWebhooks.id, id), isNull(organizations.deletedAt)))
      // Another worker checks it, or removes it.
      .for('update', { of: organizationWebhooks, skipLocked: true });
    if (!found || (await waitingMessages(tx, id)) >= MOST_WAITING) return 0;
    const { webhook, slug } = found;
    const { position, parts } = await changedClusters(tx, webhook.organizationId, webhook.position);
    const contents: Content[] = webhook.events.includes('clusters')
      ? parts.map((part) => ({ type: 'clusters.changed', data: { organization: slug, ...part } }))
      : [];
    const prices = webhook.events.includes('prices')
      ? await changedPrices(tx, webhook.organizationId, webhook.seen?.prices, now)
      : undefined;
    for (const machines of chunks(prices?.machines ?? []))
      contents.push({ type: 'prices.changed', data: { organization: slug, machines } });
    const { threshold } = webhook;
    const savings =
      threshold === null
        ? undefined
        : await possibleSavings(tx.$client, webhook.organizationId, threshold, webhook.seen?.savings, now);
    for (const clusters of chunks(savings?.clusters ?? [])) {
      const terms = { threshold: threshold ?? '', currency: (await storedCurrency(tx.$client)) ?? null };
      contents.push({ type: 'savings.possible', data: { organization: slug, ...terms, clusters } });
    }
    const stock = webhook.events.includes('stock')
      ? await flippedStock(tx, webhook.organizationId, webhook.seen?.stock)
      : undefined;
    if (stock && stock.flips.length > 0)
      contents.push({ type: 'stock.flipped', data: { organization: slug, flips: stock.flips } });
    const seen: SeenState = {
      ...(prices && { prices: prices.seen }),
      ...(savings?.seen && { savings: savings.seen }),
      ...(stock && { stock: stock.seen }),
    };
    await store(tx, id, { position, seen }, contents, now);
    return contents.length;
  });
}

const chunks = <T>(rows: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(rows.length / ROWS_PER_MESSAGE) }, (_, i) =>
    rows.slice(i * ROWS_PER_MESSAGE, (i + 1) * ROWS_PER_MESSAGE),
  );

const waitingMessages = (tx: Database, id: number): Promise<number> => {
  const { webhook, deliveredAt, gaveUpAt } = webhookMessages;
  return tx.$count(webhookMessages, and(eq(webhook, id), isNull(deliveredAt), isNull(gaveUpAt)));
};

async function store(
  tx: Database,
  id: number,
  { position, seen }: { readonly position: number; readonly seen: SeenState },
  contents: readonly Content[],
  now: Date,
): Promise<void> {
  await tx
    .update(organizationWebhooks)
    .set({ position, seen })
    .where(
      and(
        eq(organizationWebhooks.id, id),
        sql`(${organizationWebhooks.position}, ${organizationWebhooks.seen}) is distinct from
          (${position}::bigint, ${JSON.stringify(seen)}::text::jsonb)`,
      ),
    );
  if (contents.length === 0) return;
  const timestamp = now.toISOString();
  await tx.insert(webhookMessages).values(
    contents.map(({ type, data }) => {
      const body: WebhookMessage = { type, timestamp, data };
      return { webhook: id, messageId: newMessageId(), body };
    }),
  );
}
