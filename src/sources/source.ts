import type { z } from 'zod';
import type { DescribedCluster } from '../domain/cluster.ts';
import type { OfferedPlan } from '../domain/database-plan.ts';
import { PlainFailure } from '../domain/errors.ts';
import type { Cycle } from '../domain/lifecycle.ts';
import type { Offer, SourceMemoryUnit } from '../domain/machine.ts';
import type { MachineFacts } from '../domain/machine-facts.ts';
import type { ReferenceRates } from '../domain/prices/exchange-rates.ts';
import type { OfferedRegionPrice, RegionItem } from '../domain/prices/region-price.ts';
import type { CredentialProvider } from './credentials/provider.ts';
import type { CredentialKind, TokenIssuers } from './credentials/types.ts';

/**
 * The kind of a failure decides the worker's next step.
 * - `retry`: a problem of the upstream or the network (timeout, 5xx, lost connection, unknown name, rate limit). The request
 *   is repeated within the run, then the run, not before `retryAfterMs`.
 * - `invalid`: the adapter does not understand the answer, which may be a maintenance page. The run is repeated rarely.
 * - `misconfigured`: an operator must change a setting (401, 403, untrusted certificate, missing rate).
 * - `gone`: the endpoint does not exist any more (404, 410). It never means an empty catalogue. The run is repeated as
 *   rarely as after `invalid`.
 */
export type SourceFailureKind = 'retry' | 'invalid' | 'misconfigured' | 'gone';

/** A source that could not be read. Its message is for an operator and contains no secret. */
export class SourceError extends PlainFailure {
  override readonly name = 'SourceError';
  readonly kind: SourceFailureKind;
  /** The upstream accepts no request for this time (Retry-After). */
  readonly retryAfterMs: number | undefined;
  /** The failure applies to every request (429, or no credentials), so no further region is requested. */
  readonly limitsAll: boolean;
  /** The upstream's answer, if its status is the failure. */
  readonly status: number | undefined;

  constructor(
    kind: SourceFailureKind,
    message: string,
    options: {
      cause?: unknown;
      retryAfterMs?: number | undefined;
      limitsAll?: boolean;
      status?: number;
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.retryAfterMs = options.retryAfterMs;
    this.limitsAll = options.limitsAll ?? false;
    this.status = options.status;
  }
}

export const badAnswer = (message: string) => new SourceError('invalid', message);
export const misconfigured = (message: string) => new SourceError('misconfigured', message);
export const passingFailure = (message: string) => new SourceError('retry', message);

export function statusOf(error: unknown): number | undefined {
  return error instanceof SourceError ? error.status : undefined;
}

/** An unusable row. It counts as seen and keeps its last good values. */
export interface RejectedRow {
  readonly kind: 'rejected';
  /** The row in the source's terms, e.g. the type's name or `type@region`. */
  readonly key: string;
  /** The stored machine does not count as missing. A name without a region covers every region, a region without a name every machine. */
  readonly regionCode?: string;
  readonly name?: string;
  /** The organization's slug of a rejected cluster, if known; then `key` is the cluster's key. */
  readonly organization?: string;
  /** The field, its rule and its value. */
  readonly reason: string;
  /** The row waits for an operator to configure or create something. The guard does not count it as a broken row. */
  readonly waits?: true;
  /** The row is of a payload with only these rows. */
  readonly of?: ValidatorItem['of'];
}

/** A region that was not read completely: its stored machines and its freshness do not change. It counts as one unusable row. */
export interface UnreadRegion {
  readonly kind: 'unread';
  readonly regionCode: string;
  readonly reason: string;
}

export interface Validator {
  readonly url: string;
  readonly etag?: string;
  readonly lastModified?: string;
}

export interface Unmodified {
  readonly unmodified: Validator;
  readonly headers: Headers;
}

interface PayloadOfRows {
  readonly validator: Validator;
  readonly regionCode?: string;
  /** The payload has only these rows; the machines of the region are in another one. */
  readonly of?: 'database_plan';
}

export type ValidatorItem =
  /** After its rows are stored, the payload is read only if it has changed. Not for a payload that states other rows later. */
  | (PayloadOfRows & { readonly kind: 'validator' })
  /** The stored rows come from this payload. They do not change, and count as seen. */
  | (PayloadOfRows & { readonly kind: 'unmodified' });

/** The freshness that the upstream states, RFC 3339, of one region or of the whole source. Default: the time of the run. */
export interface DataTime {
  readonly kind: 'as-of';
  readonly time: string;
  readonly regionCode?: string;
}

export type UnreadItem = RegionItem | 'database_plan';

export type CatalogueItem =
  | ValidatorItem
  /** `country`: ISO 3166-1 alpha-2, in any case. */
  | { readonly kind: 'region'; readonly code: string; readonly name: string; readonly country?: string }
  | { readonly kind: 'offer'; readonly offer: Offer }
  | { readonly kind: 'region-price'; readonly regionCode: string; readonly price: OfferedRegionPrice }
  | { readonly kind: 'database-plan'; readonly regionCode: string; readonly plan: OfferedPlan }
  /** The prices of these items could not be read. Regions keep their last ones. */
  | { readonly kind: 'unread-prices'; readonly items: readonly UnreadItem[] }
  | RejectedRow
  | UnreadRegion
  | DataTime
  /** The count of rows that the upstream stated, and the count that arrived. They must be equal. */
  | { readonly kind: 'total'; readonly of: string; readonly advertised: number; readonly fetched: number };

export interface JsonAnswer<T> {
  readonly data: T;
  /** The most JSON values of the payload; a list in pages has a bound of their sum. */
  readonly values: number;
  readonly headers: Headers;
  /** The address after redirects, the base of relative links in the answer. */
  readonly url: URL;
  readonly validator?: Validator;
}

export interface JsonRequest {
  readonly query?: Readonly<Record<string, string | number>>;
  /** Added to the headers of every request, or replacing them; never credentials. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export type RatesReading = (ReferenceRates & { readonly validator?: Validator }) | Unmodified;

/** A release cycle, or a rejected row. */
export type CycleItem = { readonly kind: 'cycle'; readonly cycle: Cycle } | RejectedRow;

export interface StreamAnswer {
  /**
   * Readable once. Fails with SourceError `retry` if the connection is lost or silent. A body that ends with its connection may be
   * cut without a failure: its reader must check that it is complete.
   */
  readonly body: AsyncIterable<Uint8Array>;
  readonly headers: Headers;
  readonly url: URL;
  readonly validator?: Validator;
}

/** Reads an upstream. A request that fails with `retry` is repeated a few times; the job queue repeats whole runs. */
export interface SourceHttp {
  readonly base: URL;
  readonly hasCredentials: boolean;
  /**
   * GETs a payload at a path below the source's address (`''` is the address itself), or at an absolute URL of the same origin.
   * @throws SourceError; the signal's reason when it aborts
   */
  json<T>(path: string, schema: z.ZodType<T>, request?: JsonRequest): Promise<JsonAnswer<T>>;
  /** GETs a payload that is too large for memory. Each chunk restarts the deadline. @throws as `json` */
  stream(path: string, request?: JsonRequest): Promise<StreamAnswer>;
  /** Like `json`, if the payload has changed since the source's rows were stored. */
  jsonIfModified<T>(
    path: string,
    schema: z.ZodType<T>,
    request?: JsonRequest,
  ): Promise<JsonAnswer<T> | Unmodified>;
  streamIfModified(path: string, request?: JsonRequest): Promise<StreamAnswer | Unmodified>;
  /**
   * Returns another address of the same provider, with the same limits. An adapter sends credentials only to the provider's
   * addresses: the `same`, or the source's API `key` (the same if it has none).
   */
  at(url: string, credentials: 'same' | 'key' | 'none'): SourceHttp;
}

export interface SourceContext {
  readonly http: SourceHttp;
  readonly now: () => Date;
  readonly options?: unknown;
}

/** The schema of an adapter's options; their values are text. */
export type SourceOptions = z.ZodObject<Readonly<Record<string, z.ZodType<string | undefined>>>>;

interface CatalogueReading {
  readonly id: string;
  /** Paths below the source's URL. Braces contain a variable part, or an option with a URL. */
  readonly endpoints: readonly string[];
  readonly credentials: CredentialKind;
  readonly tokenIssuers?: TokenIssuers;
  /** An additional API key of its sources: its form and its purpose. */
  readonly apiKey?: { readonly credentials: CredentialKind; readonly describe: string };
  /** The facts that its upstream states for some machines. Default: none. */
  readonly facts?: readonly (keyof MachineFacts)[];
  readonly schedule: string;
  readonly notes?: string;
  /**
   * Yields unusable rows as `rejected`, and unreadable regions as `unread` if another region can be read.
   * @throws SourceError if the catalogue cannot be read completely
   */
  catalogue(context: SourceContext): AsyncIterable<CatalogueItem>;
}

/** A provider's machine catalogue. Registry, documentation and conformance suite read these fields. */
export interface CatalogueAdapter extends CatalogueReading {
  /** Visible to readers. The id never changes. Ids from 1000 are for providers without an adapter. */
  readonly provider: {
    readonly id: number;
    readonly name: string;
    /**
     * Price changes from this time on apply to new machines alone: existing ones keep their price. RFC 3339. If the provider changes the
     * prices of all machines again, this is the first later change that leaves them alone.
     */
    readonly keepsPricesSince?: string;
  };
  readonly large?: boolean;
  /** The public address. `--live` uses it if the adapter needs no credentials. */
  readonly baseUrl: string;
  readonly memoryUnit: SourceMemoryUnit;
  readonly currency: string;
}

/** Reads a form of catalogue that many providers have. The source's configuration names the provider. */
export interface GenericCatalogueAdapter extends CatalogueReading {
  readonly provider?: undefined;
  /** The options of its sources, each with a description. `provider` is the name that readers see. */
  readonly options: SourceOptions & { readonly shape: { readonly provider: z.ZodType<string> } };
  /** Whether the source's URL may also be a path on this machine. */
  readonly readsFiles: boolean;
  readonly memoryUnit?: SourceMemoryUnit;
  readonly currency?: undefined;
  /** The origin of the prices' currency, for the documentation. An option `currency` applies to all prices. */
  readonly currencyFrom: string;
}

export type AnyCatalogueAdapter = CatalogueAdapter | GenericCatalogueAdapter;

/** The items of a cluster adapter, in any order; after cluster-defaults.ts, with complete clusters. */
export type ClusterItem<Cluster = DescribedCluster> =
  | { readonly kind: 'cluster'; readonly cluster: Cluster }
  | ValidatorItem
  | DataTime
  | RejectedRow;

export interface Retries {
  run<T>(request: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

export interface Requests {
  begin(): NotedRequest;
}

export interface NotedRequest {
  /** Drops status and bytes of an earlier attempt. */
  attempt(): void;
  sentTo(url: URL): void;
  answered(status: number): void;
  counted(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void>;
  endingWith(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void>;
  end(error?: unknown): void;
}

export interface ClusterContext extends SourceContext {
  /** The source's address and credentials, for an adapter that does not use `http`. */
  readonly address: { readonly url: string; readonly credentials: CredentialProvider };
  /** Ends the reading, and requests of `http`, with the signal's reason. */
  readonly signal?: AbortSignal;
  readonly retries?: Retries;
  readonly requests?: Requests;
}

export interface WatchContext extends ClusterContext {
  readonly signal: AbortSignal;
}

export interface ClusterAdapter {
  readonly id: string;
  readonly endpoints: readonly string[];
  readonly credentials: CredentialKind;
  readonly schedule: string;
  readonly options?: SourceOptions;
  readonly baseUrl?: string;
  readonly readsFiles?: boolean;
  readonly notes?: string;
  /** Fields of an entry of the configuration, for the documentation. */
  readonly example?: Readonly<Record<string, string | object>>;
  /** Reads every cluster once. @throws SourceError if the source cannot be read completely */
  clusters(context: ClusterContext): AsyncIterable<ClusterItem>;
  /**
   * Yields all clusters as one list: first the current ones, then after changes. A cluster that is missing was deleted.
   * Lists everything again if it may have missed a change. Ends only by the signal. @throws SourceError as `clusters`
   */
  watch?(context: WatchContext): AsyncIterable<readonly ClusterItem[]>;
}
