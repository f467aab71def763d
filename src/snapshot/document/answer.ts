import type { Grant } from '../../domain/scope.ts';

/** Which tier answered: the `Fleetbook-Tier` header. */
export type Tier = 'memory' | 'redis' | 'postgres' | 'disk';

/** A JSON body, encoded once. `gzip` and `br` are there only where they are smaller. */
export interface EncodedBody {
  readonly identity: Buffer;
  readonly gzip: Buffer | undefined;
  readonly br: Buffer | undefined;
  /** Hash of the identity bytes: the opaque part of the ETag, the same whichever tier answered. */
  readonly hash: string;
  /**
   * True while `gzip` and `br` are still to be made, by `compress`. Whoever wants the body plain need not wait for
   * them; nobody else may be answered before.
   */
  readonly isPlainOnly?: boolean;
  /** Makes what is still to be made. */
  compress?(): Promise<void>;
}

/** A value at once, or a promise of it. */
export type MaybePromise<T> = T | Promise<T>;

/** Continues with a value: at once where it is there. */
export function whenThere<T, U>(
  value: MaybePromise<T>,
  next: (value: T) => MaybePromise<U>,
): MaybePromise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

export interface Answer {
  readonly body: EncodedBody;
  readonly tier: Tier;
  /** When the data was last verified against its source, RFC 3339; undefined before the first good run. */
  readonly asOf: string | undefined;
  /** The currency of its prices, ISO 4217; undefined while the database does not know it. */
  readonly currency: string | undefined;
  /** Present only in an answer that may be cached: memory gave it at once, and hears of every change. */
  readonly validity?: Validity | undefined;
}

/** How long an answer may be given again: until one of its documents is invalidated. */
export interface Validity {
  /** Ids of the documents that the answer was made from. */
  readonly documents: readonly string[];
  /** The answer's `asOf`, as it is now known. */
  asOf(): string | undefined;
}

/** Hears when documents in memory may no longer be used. */
export interface InvalidationListener {
  /** This document has left memory, or a newer version of it was published. */
  onInvalidate(documentId: string): void;
  /** Every document may have changed. */
  onInvalidateAll(): void;
  /** `Validity.asOf` may say something else. No document has changed. */
  onFreshness(): void;
}

/**
 * Nothing fresh is to be had: every tier is down, or the fallback is at its limit. The API answers 503 with
 * Retry-After.
 */
export class Unavailable extends Error {
  override readonly name = 'Unavailable';
  readonly retryAfterSeconds: number;

  constructor(message: string, retryAfterSeconds = 1, options?: ErrorOptions) {
    super(message, options);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/**
 * What the API may ask of the machine catalogue. An answer comes at once where memory has it. Every method may
 * reject with `Unavailable`.
 */
export interface CatalogueReader {
  providers(): MaybePromise<Answer>;
  /** An empty list for a provider or region that does not exist, or a region of another provider. */
  machines(providerId: number, regionId: number): MaybePromise<Answer>;
  /** Undefined when the published catalogue has no such machine. */
  machine(id: number): MaybePromise<Answer | undefined>;
  /** Newest first. Undefined when the published catalogue has no such machine. */
  machinePrices(id: number): MaybePromise<Answer | undefined>;
}

/** What the API may ask of an organization's clusters. Answers and errors come as from `CatalogueReader`. */
export interface ClusterReader {
  clusters(organizationId: number): MaybePromise<Answer>;
  /** Undefined when that organization has no such cluster, whoever else may have one. */
  cluster(organizationId: number, slug: string): MaybePromise<Answer | undefined>;
}

/** Turns a token as it was presented into its grant. */
export interface TokenReader {
  /**
   * Undefined for a token that is malformed, unknown, expired or revoked: the caller must not learn which. At once
   * where memory knows it.
   * @param address names the caller, whose lookups of unknown tokens are counted; called only for such a lookup
   * Rejects with `Unavailable` when it cannot be found out.
   */
  verify(token: string, address?: () => string): MaybePromise<Grant | undefined>;
}
