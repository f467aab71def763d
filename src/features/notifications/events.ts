/** Events of an organization: which changes its webhooks receive, and in which form. */
import { type ClientDatabase, type Database, transactionOn } from '../../db/connection/client.ts';
import { and, asc, eq, gt, isNull, lte, sql } from '../../db/connection/drizzle.ts';
import { array, type RowOf, rfc3339 } from '../../db/connection/statements.ts';
import { runningClusters, storedLifecycles } from '../../db/lifecycles.ts';
import { storedCurrency } from '../../db/prices/currency.ts';
import { IS_PUBLISHED } from '../../db/published-rows.ts';
import { recentStockFlips } from '../../db/runs/stock-flips.ts';
import {
  feedChanges,
  feedHead,
  organizations,
  organizationWebhooks,
  type SeenState,
  type WEBHOOK_EVENTS,
} from '../../db/schema.ts';
import { dayOf, isEnding, LIFECYCLE_DAYS, lifecycleOf, nameOfStater } from '../../domain/lifecycle.ts';
import {
  type BookForTerm,
  bookForTerm,
  type PriceBookEntry,
  type SelectedMachine,
} from '../../domain/prices/price-book.ts';
import { nodePrice, nodePriceBy } from '../../market/market.ts';
import { BOOK_ENTRY_JSON } from '../../snapshot/document/load.ts';
import { countWaiting, enqueue } from './messages.ts';
import { type PossibleSaving, possibleSavings } from './possible-savings.ts';

export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number];

export interface WebhookMessage {
  readonly type:
    | 'clusters.changed'
    | 'prices.changed'
    | 'savings.possible'
    | 'stock.flipped'
    | 'lifecycle.ending'
    | 'machines.restocked'
    | 'webhook.test';
  /** When the worker found the events, RFC 3339. */
  readonly timestamp: string;
  readonly data: WebhookData;
}

export type WebhookData =
  | ClustersChanged
  | PricesChanged
  | SavingsPossible
  | StockFlipped
  | LifecycleEnding
  | MachinesRestocked
  | { readonly organization: string };

export interface ClustersChanged {
  readonly organization: string;
  readonly clusters: readonly { readonly change: 'created' | 'changed' | 'deleted'; readonly slug: string }[];
  /** True if earlier changes are lost, because no worker ran for as long as changes are kept. Read all clusters again. */
  readonly incomplete: boolean;
}

/** An amount as the provider states it. Decimal text, exactly. */
export interface StatedPrice {
  readonly amount: string;
  readonly per: string;
  readonly currency: string;
}

export interface PricesChanged {
  readonly organization: string;
  readonly machines: readonly ChangedPrice[];
}

export interface ChangedPrice {
  readonly id: number;
  readonly name: string;
  readonly provider: string;
  readonly region: string;
  readonly before: StatedPrice;
  readonly after: StatedPrice;
  /** What a new machine costs the organization per minute on demand, in the currency of the catalogue; null without an exchange rate. */
  readonly price: number | null;
  /** The list price on demand. */
  readonly list_price: number | null;
  /** Slugs of the first clusters that use the machine. */
  readonly clusters: readonly string[];
  /** How many other clusters use it. */
  readonly more: number;
}

export interface SavingsPossible {
  readonly organization: string;
  /** Per month, in the currency of the catalogue. */
  readonly threshold: string;
  readonly currency: string | null;
  readonly clusters: readonly PossibleSaving[];
}

export interface StockFlipped {
  readonly organization: string;
  readonly flips: readonly ProviderFlip[];
}

export interface LifecycleEnding {
  readonly organization: string;
  /** Days before the end at which a cluster is in a message. */
  readonly within: number;
  readonly clusters: readonly EndingCluster[];
}

/** A cluster whose version has ended, or ends within the days. A cluster is in a message again when its version has ended, or the day moves. */
export interface EndingCluster {
  readonly slug: string;
  readonly provider: string;
  readonly engine: string | null;
  readonly version: string | null;
  readonly state: 'ended' | 'supported';
  /** The last supported day, `YYYY-MM-DD`; null if it has passed on an unknown day. */
  readonly end_of_life: string | null;
  /** The name of the provider, or `endoflife.date`. */
  readonly stated_by: string | null;
}

/** A provider whose machines became sold out, or available, nearly all and at once. */
export interface ProviderFlip {
  readonly provider: string;
  readonly to: 'sold_out' | 'available';
  /** Machines that changed, all machines, and those in the new state. */
  readonly changed: number;
  readonly machines: number;
  readonly now: number;
  readonly regions: number;
  /** Slugs of the first clusters on its machines. */
  readonly clusters: readonly string[];
  /** How many other clusters are on them. */
  readonly more: number;
}

export interface MachinesRestocked {
  readonly organization: string;
  readonly machines: readonly RestockedMachine[];
}

/** A named machine that could not be ordered at the last check, and can be now. Prices as in `ChangedPrice`. */
export interface RestockedMachine
  extends Pick<ChangedPrice, 'id' | 'name' | 'provider' | 'region' | 'price' | 'list_price'> {
  /** RFC 3339. */
  readonly since: string | null;
}

/**
 * Messages that may wait for one receiver. A webhook with more is not checked until some are delivered or given up, so its
 * events wait where they are stored anyway.
 */
export const MOST_WAITING = 100;
const ROWS_PER_MESSAGE = 500;

type Content = Pick<WebhookMessage, 'type' | 'data'>;

/**
 * Finds the events of a webhook, and stores their messages in the same transaction as what it has seen.
 * @returns the number of new messages
 */
export async function collectEvents(db: ClientDatabase, id: number, now: Date): Promise<number> {
  return transactionOn(db, async (tx) => {
    const [found] = await tx
      .select({ webhook: organizationWebhooks, slug: organizations.slug })
      .from(organizationWebhooks)
      .innerJoin(organizations, eq(organizations.id, organizationWebhooks.organizationId))
      .where(and(eq(organizationWebhooks.id, id), isNull(organizations.deletedAt)))
      // Another worker checks it, or removes it.
      .for('update', { of: organizationWebhooks, skipLocked: true });
    if (!found || (await countWaiting(tx, { webhook: id })) >= MOST_WAITING) return 0;
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
        : await possibleSavings(tx, webhook.organizationId, threshold, webhook.seen?.savings, now);
    for (const clusters of chunks(savings?.clusters ?? [])) {
      const terms = { threshold: threshold ?? '', currency: (await storedCurrency(tx)) ?? null };
      contents.push({ type: 'savings.possible', data: { organization: slug, ...terms, clusters } });
    }
    const stock = webhook.events.includes('stock')
      ? await flippedStock(tx, webhook.organizationId, webhook.seen?.stock)
      : undefined;
    if (stock && stock.flips.length > 0)
      contents.push({ type: 'stock.flipped', data: { organization: slug, flips: stock.flips } });
    const ending = webhook.events.includes('lifecycle')
      ? await endingClusters(tx, webhook.organizationId, webhook.seen?.lifecycle, now)
      : undefined;
    for (const clusters of chunks(ending?.clusters ?? []))
      contents.push({
        type: 'lifecycle.ending',
        data: { organization: slug, within: LIFECYCLE_DAYS.standard, clusters },
      });
    const restocked = webhook.events.includes('restocked')
      ? await restockedMachines(
          tx,
          webhook.organizationId,
          webhook.machineIds ?? [],
          webhook.seen?.restocked,
          now,
        )
      : undefined;
    if (restocked && restocked.machines.length > 0) {
      const { machines } = restocked;
      contents.push({ type: 'machines.restocked', data: { organization: slug, machines } });
    }
    const seen: SeenState = {
      ...(prices && { prices: prices.seen }),
      ...(savings?.seen && { savings: savings.seen }),
      ...(stock && { stock: stock.seen }),
      ...(ending && { lifecycle: ending.seen }),
      ...(restocked && { restocked: restocked.seen }),
    };
    await store(tx, id, { position, seen }, contents, now);
    return contents.length;
  });
}

const chunks = <T>(rows: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(rows.length / ROWS_PER_MESSAGE) }, (_, i) =>
    rows.slice(i * ROWS_PER_MESSAGE, (i + 1) * ROWS_PER_MESSAGE),
  );

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
  const timestamp = now.toISOString();
  const bodies = contents.map(({ type, data }): WebhookMessage => ({ type, timestamp, data }));
  await enqueue(
    tx,
    bodies.map((body) => ({ to: { webhook: id }, body })),
  );
}

/** Rows of the feed that one check reads. A row has at most 500 changes. The next check reads the others. */
const MOST_ROWS = 20;

/**
 * Reads changes of an organization's clusters from the feed: a change is in it when readers have it.
 * @param after the position that earlier messages reached
 */
async function changedClusters(db: Database, organizationId: number, after: number) {
  const [head] = await db.select({ position: feedHead.position, pruned: feedHead.pruned }).from(feedHead);
  if (!head) throw new Error('unreachable: the feed has a head');
  const rows = await db
    .select({ last: feedChanges.last, kinds: feedChanges.kinds, slugs: feedChanges.slugs })
    .from(feedChanges)
    .where(
      and(
        eq(feedChanges.organizationId, organizationId),
        gt(feedChanges.last, after),
        lte(feedChanges.last, head.position),
      ),
    )
    .orderBy(asc(feedChanges.last))
    .limit(MOST_ROWS);
  const parts = rows.map(({ kinds, slugs }) => ({
    clusters: kinds.flatMap((kind, n) => {
      const change = /^cluster\.(created|changed|deleted)$/.exec(kind)?.[1] as
        | ClustersChanged['clusters'][number]['change']
        | undefined;
      const slug = slugs?.[n];
      return change === undefined || slug === undefined ? [] : [{ change, slug }];
    }),
    incomplete: false,
  }));
  return {
    parts: [...(head.pruned > after ? [{ clusters: [], incomplete: true }] : []), ...parts],
    /** The position of the feed that the parts reach. */
    position: rows.length < MOST_ROWS ? head.position : (rows.at(-1)?.last ?? head.position),
  };
}

/** Slugs of clusters that a message names for a machine or a provider. */
const MOST_SLUGS = 100;

interface UsedMachine extends SelectedMachine {
  readonly provider: string;
  readonly region: string;
  readonly price: string | null;
  readonly amount: string;
  readonly per: string;
  readonly currency: string;
  readonly isPublished: boolean;
  readonly clusters: number;
  readonly slugs: readonly string[];
}

type SeenPrices = NonNullable<SeenState['prices']>;

/**
 * Compares the prices with those of the last check. An exchange rate changes no price of a source, so it is no event.
 * @param before undefined at the first check, which finds no change
 */
async function changedPrices(
  db: Database,
  organizationId: number,
  before: SeenPrices | undefined,
  now: Date,
) {
  const changes: { readonly machine: UsedMachine; readonly old: string }[] = [];
  const seen: Record<string, string> = {};
  for (const machine of await usedMachines(db, organizationId)) {
    const { id, isPublished } = machine;
    const stated = textOf(machine);
    const old = before?.[id];
    // Readers do not have the price yet. The next check compares it.
    seen[id] = old !== undefined && !isPublished ? old : stated;
    if (old !== undefined && old !== seen[id]) changes.push({ machine, old });
  }
  const book = await bookOf(db, changes.length > 0 ? organizationId : undefined, now);
  const machines = changes.map(({ machine, old }) => changed(machine, priceIn(old), book));
  return { machines, seen };
}

/** @param organizationId undefined for an empty book */
async function bookOf(db: Database, organizationId: number | undefined, now: Date): Promise<BookForTerm> {
  const entries = organizationId === undefined ? [] : await priceBookOf(db, organizationId);
  return bookForTerm(entries, 'on_demand', now.getTime());
}

async function priceBookOf(db: Database, organizationId: number): Promise<PriceBookEntry[]> {
  const rows = await db.execute<RowOf<{ entry: PriceBookEntry }>>(sql`
    select ${sql.raw(BOOK_ENTRY_JSON)} as entry from price_book_entries e where e.organization_id = ${organizationId}`);
  return [...rows].map(({ entry }) => entry);
}

function usedMachines(db: Database, organizationId: number) {
  return db.execute<RowOf<UsedMachine>>(sql`
    select m.id, m.name, m.region_id as "regionId", r.provider_id as "providerId", p.name as provider, r.code as region, m.price::text as price,
      trim_scale(m.source_amount)::text as amount, m.source_per as per, m.source_currency as currency,
      r.published_version >= r.version as "isPublished", used.clusters, used.slugs
    from (
      select machine_id, count(*)::int as clusters,
        (array_agg(slug order by slug collate "C"))[:${sql.raw(String(MOST_SLUGS))}] as slugs
      from clusters where organization_id = ${organizationId} and retired_at is null group by machine_id
    ) used join machines m on m.id = used.machine_id join regions r on r.id = m.region_id
    join providers p on p.id = r.provider_id
    where m.source_amount is not null
    order by m.id`);
}

const textOf = ({ amount, per, currency }: StatedPrice): string => `${amount} ${currency}/${per}`;

function priceIn(text: string): StatedPrice {
  const [, amount = '', currency = '', per = ''] = /^(\S+) ([^\s/]+)\/(\S+)$/.exec(text) ?? [];
  return { amount, per, currency };
}

function changed(
  { amount, per, currency, price, clusters, slugs, ...machine }: UsedMachine,
  before: StatedPrice,
  book: BookForTerm,
): ChangedPrice {
  const { id, name, provider, region } = machine;
  return {
    ...{ id, name, provider, region },
    before,
    after: { amount, per, currency },
    ...pricesOf({ ...machine, price }, book),
    clusters: slugs,
    more: clusters - slugs.length,
  };
}

function pricesOf(
  { price, ...machine }: SelectedMachine & Pick<UsedMachine, 'price'>,
  book: BookForTerm,
): Pick<ChangedPrice, 'price' | 'list_price'> {
  const list = price === null ? null : nodePrice(price, null);
  const own = nodePriceBy(list, book.entryOf(machine));
  return { price: own && Number(own.price), list_price: list && Number(list.price) };
}

type NamedMachine = SelectedMachine &
  Pick<UsedMachine, 'provider' | 'region' | 'price' | 'isPublished'> &
  Pick<RestockedMachine, 'since'> & { readonly isAvailable: boolean };

/**
 * Returns the named machines that can be ordered and could not at the last check. A machine that was sold out between two checks
 * alone is none.
 * @param before undefined at the first check, which finds none
 */
async function restockedMachines(
  db: Database,
  organizationId: number,
  ids: readonly number[],
  before: SeenState['restocked'],
  now: Date,
): Promise<{ readonly machines: readonly RestockedMachine[]; readonly seen: Record<string, boolean> }> {
  const named = await db.execute<RowOf<NamedMachine>>(sql`
    select m.id, m.name, m.region_id as "regionId", r.provider_id as "providerId", p.name as provider, r.code as region,
      m.price::text as price, r.published_version >= r.version as "isPublished",
      ${sql.raw(IS_PUBLISHED)} as "isAvailable", (
        select ${rfc3339(sql`max(h.changed_at)`, 'us')} from machine_availability h
        where h.machine_id = m.id and h.after = 'available') as since
    from machines m join regions r on r.id = m.region_id join providers p on p.id = r.provider_id
    where m.id = any(${array(ids, 'integer')})
    order by m.id`);
  const seen: Record<string, boolean> = {};
  const found: NamedMachine[] = [];
  for (const machine of named) {
    const { id, isAvailable, isPublished } = machine;
    const old = before?.[id];
    // Readers do not have the stock yet. The next check compares it.
    seen[id] = old !== undefined && !isPublished ? old : isAvailable;
    if (old === false && seen[id]) found.push(machine);
  }
  const book = await bookOf(db, found.length > 0 ? organizationId : undefined, now);
  const machines = found.map((machine): RestockedMachine => {
    const { id, name, provider, region, since } = machine;
    return { ...{ id, name, provider, region, since }, ...pricesOf(machine, book) };
  });
  return { machines, seen };
}

/**
 * Returns the flips of providers whose machines the organization's clusters use.
 * @param before the last seen run; undefined at the first check, which finds no flip
 */
async function flippedStock(
  db: Database,
  organizationId: number,
  before: number | undefined,
): Promise<{ readonly flips: readonly ProviderFlip[]; readonly seen: number }> {
  const recent = await recentStockFlips(db);
  const seen = Math.max(before ?? 0, ...recent.map(({ runId }) => runId));
  const fresh = before === undefined ? [] : recent.filter(({ runId }) => runId > before);
  if (fresh.length === 0) return { flips: [], seen };
  const sources = fresh.map(({ sourceId }) => sourceId);
  const used = await db.execute<{
    sourceId: string;
    provider: string;
    clusters: number;
    slugs: string[];
  }>(sql`
    select m.source_id as "sourceId", p.name as provider, count(*)::int as clusters,
      (array_agg(c.slug order by c.slug collate "C"))[:${sql.raw(String(MOST_SLUGS))}] as slugs
    from clusters c join machines m on m.id = c.machine_id join regions r on r.id = m.region_id
    join providers p on p.id = r.provider_id
    where c.organization_id = ${organizationId} and c.retired_at is null and m.source_id = any(${array(sources, 'text')})
    group by 1, 2`);
  const flips = fresh.flatMap(({ sourceId, runId: _, ...counts }) =>
    used
      .filter((each) => each.sourceId === sourceId)
      .map(({ provider, clusters, slugs }) => ({
        provider,
        ...counts,
        clusters: slugs,
        more: clusters - slugs.length,
      })),
  );
  return { flips, seen };
}

/**
 * Returns the clusters whose version has ended, or ends soon, since the last check. The first check reports those that exist.
 * @param before undefined at the first check
 */
async function endingClusters(
  db: Database,
  organizationId: number,
  before: SeenState['lifecycle'],
  now: Date,
): Promise<{ readonly clusters: readonly EndingCluster[]; readonly seen: readonly string[] }> {
  const { cycles } = await storedLifecycles(db);
  const today = dayOf(now);
  const ending = (await runningClusters(db, organizationId)).flatMap((cluster) => {
    const lifecycle = lifecycleOf(cluster, cycles, today);
    const { state, endOfLife, statedBy } = lifecycle;
    if (state === 'unknown' || !isEnding(lifecycle)) return [];
    const by = nameOfStater(statedBy, cluster.provider.name);
    return [{ cluster, state, endOfLife, by, key: `${cluster.id} ${state} ${endOfLife ?? ''}` }];
  });
  const known = new Set(before);
  const clusters = ending
    .filter(({ key }) => !known.has(key))
    .map(({ cluster: { slug, provider, engine, version }, state, endOfLife, by }) => ({
      ...{ slug, provider: provider.name, engine, version, state },
      end_of_life: endOfLife,
      stated_by: by,
    }));
  return { clusters, seen: ending.map(({ key }) => key) };
}
