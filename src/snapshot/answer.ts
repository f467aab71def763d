/** Which tier answered: the `Fleetbook-Tier` header. */
export type Tier = 'memory' | 'redis' | 'postgres';

/** A JSON body, encoded once. `gzip` and `br` are there only where they are smaller. */
export interface EncodedBody {
  readonly identity: Buffer;
  readonly gzip: Buffer | undefined;
  readonly br: Buffer | undefined;
  /** Hash of the identity bytes: the opaque part of the ETag, the same whichever tier answered. */
  readonly hash: string;
}

export interface Answer {
  readonly body: EncodedBody;
  readonly tier: Tier;
  /** When the data was last verified against its source, RFC 3339; undefined before the first good run. */
  readonly asOf: string | undefined;
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

/** What the API may ask of the machine catalogue. Every method may throw `Unavailable`. */
export interface CatalogueReader {
  providers(): Promise<Answer>;
  /** An empty list for a provider or region that does not exist, or a region of another provider. */
  machines(providerId: number, regionId: number): Promise<Answer>;
  /** Undefined when the published catalogue has no such machine. */
  machine(id: number): Promise<Answer | undefined>;
  /** Newest first. Undefined when the published catalogue has no such machine. */
  machinePrices(id: number): Promise<Answer | undefined>;
}

/** What the API may ask of an organization's clusters. Every method may throw `Unavailable`. */
export interface ClusterReader {
  clusters(organizationId: number): Promise<Answer>;
  /** Undefined when that organization has no such cluster, whoever else may have one. */
  cluster(organizationId: number, slug: string): Promise<Answer | undefined>;
}
