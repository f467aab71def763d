import type { Grant } from '../../domain/scope.ts';

/** Which tier answered: the `Fleetbook-Tier` header. */
export type Tier = 'memory' | 'redis' | 'postgres' | 'disk';

/** A JSON body, encoded once. `gzip` and `br` are present only if they are smaller. */
export interface EncodedBody {
  readonly identity: Buffer;
  readonly gzip: Buffer | undefined;
  readonly br: Buffer | undefined;
  /** Hash of the identity bytes: the opaque part of the ETag, equal for all tiers. */
  readonly hash: string;
  /** True until `compress` has made `gzip` and `br`. Only a plain answer may be sent before. */
  readonly isPlainOnly?: boolean;
  compress?(): Promise<void>;
}

export type MaybePromise<T> = T | Promise<T>;

/** Continues with a value, without a promise if it is present. */
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
  readonly currency: string | undefined;
  /** Present if the answer may be cached: memory gave it and receives every change. */
  readonly validity?: Validity | undefined;
}

/** A cached answer is valid until one of its documents is invalidated. */
export interface Validity {
  readonly documents: readonly string[];
  asOf(): string | undefined;
}

export interface InvalidationListener {
  /** Memory evicted this document, or a newer version was published. */
  onInvalidate(documentId: string): void;
  /** Every document may have changed. */
  onInvalidateAll(): void;
  /** `Validity.asOf` may have changed. No document has changed. */
  onFreshness(): void;
}

/** No tier has a fresh value: all are down, or PostgreSQL's reads are at their limit. The API answers 503 with Retry-After. */
export class Unavailable extends Error {
  override readonly name = 'Unavailable';
  readonly retryAfterSeconds: number;

  constructor(message: string, retryAfterSeconds = 1, options?: ErrorOptions) {
    super(message, options);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** Reads the machine catalogue, without a promise if memory has the answer. Every method may reject with `Unavailable`. */
export interface CatalogueReader {
  providers(): MaybePromise<Answer>;
  /** An unknown provider or region, or a region of another provider, has an empty list. */
  machines(providerId: number, regionId: number): MaybePromise<Answer>;
  /** @param organizationId has the reads of PostgreSQL in its share */
  machine(id: number, organizationId?: number): MaybePromise<Answer | undefined>;
  machinePrices(id: number, organizationId?: number): MaybePromise<Answer | undefined>;
}

/** Answers and errors are those of `CatalogueReader`. */
export interface ClusterReader {
  clusters(organizationId: number): MaybePromise<Answer>;
  cluster(organizationId: number, slug: string): MaybePromise<Answer | undefined>;
}

export interface TokenReader {
  /**
   * Returns the grant of a token; undefined for a malformed, unknown, expired or revoked one, without any distinction.
   * Rejects with `Unavailable`. @param address called for unknown tokens, whose lookups are limited
   */
  verify(token: string, address?: () => string): MaybePromise<Grant | undefined>;
}
