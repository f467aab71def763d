/** The bodies of messages: type, time and data, as in standardwebhooks.com. */
import type { WEBHOOK_EVENTS } from '../../db/schema.ts';

export type WebhookEvent = (typeof WEBHOOK_EVENTS)[number];

export interface WebhookMessage {
  readonly type:
    | 'clusters.changed'
    | 'prices.changed'
    | 'savings.possible'
    | 'stock.flipped'
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
  /** What the organization pays per minute on demand now, in the currency of the catalogue; null without an exchange rate. */
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

/** A cluster that another machine of its region would make cheaper. */
export interface PossibleSaving {
  readonly slug: string;
  readonly provider: string;
  readonly region: string;
  readonly machine: { readonly id: number; readonly name: string };
  readonly alternative: { readonly id: number; readonly name: string };
  readonly saving_per_month: number;
}
