import type { z } from 'zod';
import type { DescribedCluster } from '../domain/cluster.ts';
import type { Offer } from '../domain/machine.ts';
import type { SourceMemoryUnit } from '../domain/memory.ts';
import type { ReferenceRates } from '../domain/rates.ts';
import type { CredentialProvider } from './credentials/provider.ts';
import type { TokenIssuers } from './credentials/types.ts';

/**
 * The few meanings a failure can have; the worker decides by them what to do next.
 * - `retry`: the upstream or the network is unwell (timeout, 5xx, cut answer, no such name, rate limit); try again, not
 *   before `retryAfter`.
 * - `invalid`: the upstream answered something that this adapter does not understand; it may be a page that says so, so
 *   it is tried again too, but seldom.
 * - `misconfigured`: an operator must change a setting (401, 403, untrusted certificate, missing rate).
 * - `gone`: the endpoint does not exist any more (404, 410). Never an empty catalogue; tried again as seldom.
 */
export type SourceFailureKind = 'retry' | 'invalid' | 'misconfigured' | 'gone';

/** A source that could not be read. Its message is fit for an operator and holds no secret. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
  readonly kind: SourceFailureKind;
  /** Milliseconds that the upstream asked to be left alone (Retry-After). */
  readonly retryAfterMs: number | undefined;
  /**
   * It concerns whatever is asked for: the upstream limits whoever asks (429), or no credentials are to be had. No other
   * region of it is to be asked either.
   */
  readonly limitsAll: boolean;

  constructor(
    kind: SourceFailureKind,
    message: string,
    options?: { cause?: unknown; retryAfterMs?: number; limitsAll?: boolean },
  ) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.retryAfterMs = options?.retryAfterMs;
    this.limitsAll = options?.limitsAll ?? false;
  }
}

/** One row that cannot be used. It counts as seen and keeps its last good values. */
export interface RejectedRow {
  readonly kind: 'rejected';
  /** Which row, in the source's own words, e.g. the type's name or `type@region`. */
  readonly key: string;
  /**
   * Region and machine name where they are known: they keep the stored machine from being counted as missing. A name
   * without a region stands for that machine in every region, a region without a name for every machine there.
   */
  readonly regionCode?: string;
  readonly name?: string;
  /** The organization's slug, of a rejected cluster, where it is known; `key` is then the cluster's own key. */
  readonly organization?: string;
  /** What is wrong: the field, its value's problem and what would do. */
  readonly reason: string;
  /** It lacks what an operator has yet to say or to make: no sign of a broken feed, and no guard counts it as one. */
  readonly waits?: true;
}

/**
 * A region of which nothing, or not all, could be read: its stored machines stay as they are, and so does its age. It
 * counts as one row that cannot be used. Of a region of which only single rows cannot be used each is rejected instead.
 */
export interface UnreadRegion {
  readonly kind: 'unread';
  readonly regionCode: string;
  /** What could not be read and why. */
  readonly reason: string;
}

/**
 * How old the data is by the upstream's own word, RFC 3339: of the region, or where none is named of the source. Where
 * nothing is said it is as old as its reading.
 */
export interface DataTime {
  readonly kind: 'as-of';
  readonly time: string;
  readonly regionCode?: string;
}

/** A version of a document, as its upstream names it. */
export interface DocumentVersion {
  /** The address that was asked, without what its query says. */
  readonly url: string;
  readonly etag?: string;
  readonly lastModified?: string;
}

/** Which document the rows of a region come from, or those of the whole source where no region is named. */
export type DocumentItem =
  /**
   * Its rows are those of this batch. Once they are stored it is asked for only when it has changed; so it is not
   * yielded of a document that says another thing tomorrow.
   */
  | { readonly kind: 'version'; readonly version: DocumentVersion; readonly regionCode?: string }
  /** It is the one that the stored rows come from: they stand as they are, and count as seen. */
  | { readonly kind: 'unmodified'; readonly version: DocumentVersion; readonly regionCode?: string };

/** What an adapter yields, in any order. */
export type CatalogueItem =
  | DocumentItem
  | { readonly kind: 'region'; readonly code: string; readonly name: string }
  | { readonly kind: 'offer'; readonly offer: Offer }
  | RejectedRow
  | UnreadRegion
  | DataTime
  /** What the upstream said there is against what arrived; they must agree. */
  | { readonly kind: 'total'; readonly of: string; readonly advertised: number; readonly fetched: number };

export interface JsonAnswer<T> {
  readonly data: T;
  readonly headers: Headers;
  /** Where it came from in the end; relative links in the answer are relative to it. */
  readonly url: URL;
  /** Absent where the upstream names none. */
  readonly version?: DocumentVersion;
}

/** The answer to a conditional request for a document that is the stored one still. */
export interface Unmodified {
  readonly unmodified: DocumentVersion;
  readonly headers: Headers;
}

export interface JsonRequest {
  readonly query?: Readonly<Record<string, string | number>>;
  /** Besides those that every request has, or in their place; never credentials. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** What a source of reference rates says. */
export type RatesReading = (ReferenceRates & { readonly version?: DocumentVersion }) | Unmodified;

export interface StreamAnswer {
  /**
   * The body, uncompressed, piece by piece; to be read once. It fails with SourceError `retry` when it breaks off or
   * when nothing of it comes for as long as a whole answer may take. The end of a body that ends with its connection
   * says nothing: whoever reads it must know whether it was whole.
   */
  readonly body: AsyncIterable<Uint8Array>;
  readonly headers: Headers;
  readonly url: URL;
  /** Absent where the upstream names none. */
  readonly version?: DocumentVersion;
}

/** The one way in which adapters read their upstream, see http.ts. It never repeats a request: the job queue does. */
export interface SourceHttp {
  /** The source's URL. */
  readonly base: URL;
  /** Whether requests carry credentials. */
  readonly hasCredentials: boolean;
  /**
   * GETs a document. `path` is joined to the source's base path (`''` is the base itself), or is an absolute URL of
   * the same origin, as `Link` headers have it.
   * @throws SourceError by the meanings that its kinds have; the signal's reason when that aborts
   */
  json<T>(path: string, schema: z.ZodType<T>, request?: JsonRequest): Promise<JsonAnswer<T>>;
  /**
   * GETs a document that is too large to be held: its deadline runs anew with each piece that arrives.
   * @throws SourceError as `json` does
   */
  stream(path: string, request?: JsonRequest): Promise<StreamAnswer>;
  /** As `json`, but asks for the document only if it is no longer the version that the source's stored rows come from. */
  jsonIfModified<T>(
    path: string,
    schema: z.ZodType<T>,
    request?: JsonRequest,
  ): Promise<JsonAnswer<T> | Unmodified>;
  /** As `stream`, on the same condition. */
  streamIfModified(path: string, request?: JsonRequest): Promise<StreamAnswer | Unmodified>;
  /**
   * The same limits at another address of the same provider. Credentials only for an address that the provider itself
   * names: the `same`, or the source's API `key`, and the same where it has none.
   */
  at(url: string, credentials: 'same' | 'key' | 'none'): SourceHttp;
}

export interface SourceContext {
  readonly http: SourceHttp;
  /** "Today", for types that are announced as deprecated. */
  readonly now: () => Date;
  /** The source's options, for an adapter that has some: read them with the adapter's own schema. */
  readonly options?: unknown;
}

/**
/**
 * How a source wants its credentials; where they come from is the configuration's business. `x-auth-token` and
 * `x-goog-api-key` are the bare token in the header of that name. With `basic-or-bearer` the form of the token decides:
 * `user:password` is sent as HTTP Basic, anything else as a bearer token, which never holds a colon (RFC 6750).
 * `optional-bearer` tells more to who has a token, and something to everybody.
 */
export type CredentialKind =
  | 'none'
  | 'bearer'
  | 'optional-bearer'
  | 'basic'
  | 'basic-or-bearer'
  | 'x-auth-token'
  | 'x-goog-api-key'
  | 'aivenv1';

/** What the configuration says of a source besides its address, by name; the values are text. */
export type SourceOptions = z.ZodObject<Readonly<Record<string, z.ZodType<string | undefined>>>>;

interface CatalogueReading {
  /** The file's name, and in upper case the prefix of its environment keys: `hetzner` → `HETZNER_URL`, `HETZNER_TOKEN`. */
  readonly id: string;
  /** Paths below the source's URL; in braces stands what differs from request to request, or an option that is a URL. */
  readonly endpoints: readonly string[];
  readonly credentials: CredentialKind;
  /** How the provider hands out tokens that live for a while. */
  readonly tokenIssuers?: TokenIssuers;
  /** For what its sources may have an API key besides: how it is sent, and what for. */
  readonly apiKey?: { readonly credentials: CredentialKind; readonly describe: string };
  /** Default schedule: five cron fields, UTC. */
  readonly schedule: string;
  /** What an operator has to know besides, as Markdown: it becomes part of docs/adapters.md. */
  readonly notes?: string;
  /**
   * Reads the whole catalogue once.
   * @throws SourceError when it cannot be read whole; rows that cannot be used are yielded as `rejected` instead, and
   * regions that cannot be read, where others can, as `unread`.
   */
  catalogue(context: SourceContext): AsyncIterable<CatalogueItem>;
}

/** A provider's machine catalogue: code that describes itself, so that registry, docs and conformance suite find it. */
export interface CatalogueAdapter extends CatalogueReading {
  /** What readers see. The id is stable for ever; ids from 1000 are given to providers that no adapter names. */
  readonly provider: { readonly id: number; readonly name: string };
  /** True where one reading is too much to be begun unasked: `--live` leaves it out. */
  readonly large?: boolean;
  /** The public address, used with `--live` when the adapter can be read without credentials. */
  readonly baseUrl: string;
  /** The unit in which the source states memory, see domain/memory.ts. */
  readonly memoryUnit: SourceMemoryUnit;
  /** ISO 4217 code of its prices. */
  readonly currency: string;
}

/** A form in which many providers' catalogues come: whose it is and where it lies, the source's configuration says. */
export interface GenericCatalogueAdapter extends CatalogueReading {
  readonly provider?: undefined;
  /** What a source of this kind must or may be told; each has a description. `provider` is the name that readers see. */
  readonly options: SourceOptions & { readonly shape: { readonly provider: z.ZodType<string> } };
  /** Whether the source's URL may be a path on this machine as well. */
  readonly readsFiles: boolean;
  /** Absent where each row says its own. */
  readonly memoryUnit?: SourceMemoryUnit;
  readonly currency?: undefined;
  /** Where the prices' currency comes from, for the documentation. An option `currency` is the currency of them all. */
  readonly currencyFrom: string;
}

/** What a file of `providers/` exports as `adapter`. */
export type AnyCatalogueAdapter = CatalogueAdapter | GenericCatalogueAdapter;

/** Of an adapter, as far as the source describes its clusters; of `complete`, see complete.ts, as they are stored. */
export type ClusterItem<Cluster = DescribedCluster> =
  | { readonly kind: 'cluster'; readonly cluster: Cluster }
  | DocumentItem
  | DataTime
  | RejectedRow;

export interface ClusterContext extends SourceContext {
  /** Where the source is and its credentials, for an adapter whose client library makes its own requests. */
  readonly address: { readonly url: string; readonly credentials: CredentialProvider };
  /** Ends the reading, with the signal's reason; `http` ends by it as well. */
  readonly signal?: AbortSignal;
}

export interface WatchContext extends ClusterContext {
  /** Ends the watch. */
  readonly signal: AbortSignal;
}

/** A control plane that lists clusters. */
export interface ClusterAdapter {
  /** The file's name. */
  readonly id: string;
  /** As those of a catalogue. */
  readonly endpoints: readonly string[];
  readonly credentials: CredentialKind;
  /** Default schedule: five cron fields, UTC. */
  readonly schedule: string;
  /** What a source of this kind must or may be told besides what every source of clusters may be told. */
  readonly options?: SourceOptions;
  /** The public address, where there is one for everybody. */
  readonly baseUrl?: string;
  /** Whether the source's URL may be a path on this machine as well. */
  readonly readsFiles?: boolean;
  /** What an operator has to know besides, as Markdown: it becomes part of docs/adapters.md. */
  readonly notes?: string;
  /** Reads every cluster once. @throws SourceError when it cannot be read whole. */
  clusters(context: ClusterContext): AsyncIterable<ClusterItem>;
  /**
   * Yields the whole of what there is: first as it is found, and again each time it has changed, as soon as the changes
   * at hand are gathered. What is missing from it has been deleted. A lost connection is taken up again without a word
   * where nothing can have been missed, else by reading everything anew; the end comes only from the signal.
   * @throws SourceError as `clusters` does; whoever watches begins again after a pause
   */
  watch?(context: WatchContext): AsyncIterable<readonly ClusterItem[]>;
}
