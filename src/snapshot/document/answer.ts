import type { Grant, TokenVerifier } from '../../domain/grant.ts';

/** Which tier answered: the `Fleetbook-Tier` header. */
export type Tier = 'memory' | 'redis' | 'postgres';

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

export interface Answer {
  readonly body: EncodedBody;
  readonly tier: Tier;
  /** When the data was last verified against its source, RFC 3339; undefined before the first good run. */
  readonly asOf: string | undefined;
  /** The currency of its prices, ISO 4217; undefined while the database does not know it. */
  readonly currency: string | undefined;
}

/** Bodies up to this size (bytes) may be kept once more, as text, by whoever sends them: it counts as memory. */
export const TEXT_AT_MOST = 16 * 1024;

/** An answer out of memory, one and the same object for as long as nothing about it changes. */
export class HeldAnswer implements Answer {
  readonly body: EncodedBody;
  readonly tier = 'memory';
  readonly asOf: string | undefined;
  readonly currency: string | undefined;
  /** What whoever sends it has made of it: kept for as long as the answer is, and counted as memory by the reader. */
  prepared: unknown;

  constructor(body: EncodedBody, asOf: string | undefined, currency: string | undefined) {
    this.body = body;
    this.asOf = asOf;
    this.currency = currency;
    this.prepared = undefined;
  }
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

/** Answers by the target of the request, so that it need not be taken apart again. */
export interface RememberedAnswers {
  /** @param owner id of the organization whose answer it is, or `EVERYBODY` */
  get(owner: number, target: string): HeldAnswer | undefined;
  set(owner: number, target: string, answer: HeldAnswer): void;
}

/** Owner of answers that are the same for every organization; no organization has this id. */
export const EVERYBODY = 0;

/** Somebody whose answers may be given again without being asked for. */
export interface Remembering {
  /** A place to keep them in, out of which each vanishes as soon as it may be no longer right. */
  remembered(): RememberedAnswers;
}

/** What the API may ask of the machine catalogue. Every method may throw `Unavailable`. */
export interface CatalogueReader {
  providers(): Promise<Answer>;
  /** An empty list for a provider or region that does not exist, or a region of another provider. */
  machines(providerId: number, regionId: number): Promise<Answer>;
  /** Undefined when the published catalogue has no such machine. */
  machine(id: number): Promise<Answer | undefined>;
  /** Newest first. Undefined when the published catalogue has no such machine. */
  machinePrices(id: number): Promise<Answer | undefined>;
  readonly held?: HeldCatalogue;
}

/**
 * The same questions, answered without I/O and without a promise. Undefined means "ask in the ordinary way", and
 * nothing else: neither that there is no such thing, nor that there is.
 */
export interface HeldCatalogue extends Remembering {
  providers(): HeldAnswer | undefined;
  machines(providerId: number, regionId: number): HeldAnswer | undefined;
  machine(id: number): HeldAnswer | undefined;
}

/** What the API may ask of an organization's clusters. Every method may throw `Unavailable`. */
export interface ClusterReader {
  clusters(organizationId: number): Promise<Answer>;
  /** Undefined when that organization has no such cluster, whoever else may have one. */
  cluster(organizationId: number, slug: string): Promise<Answer | undefined>;
  readonly held?: HeldClusters;
}

/** As `HeldCatalogue`. */
export interface HeldClusters extends Remembering {
  clusters(organizationId: number): HeldAnswer | undefined;
  cluster(organizationId: number, slug: string): HeldAnswer | undefined;
}

/** A verifier that counts who tries unknown tokens, and may know some by heart. */
export interface TokenReader extends TokenVerifier {
  /** @param address whose lookups of unknown tokens are counted together; an IPv6 address stands for its /64 */
  verify(token: string, address?: string): Promise<Grant | undefined>;
  /** The grant of a token that memory can vouch for at once; undefined says nothing about the token. */
  held?(token: string): Grant | undefined;
}
