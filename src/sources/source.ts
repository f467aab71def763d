import type { z } from 'zod';
import type { DescribedCluster } from '../domain/cluster.ts';
import type { ReferenceRates } from '../domain/exchange-rates.ts';
import type { Offer, SourceMemoryUnit } from '../domain/machine.ts';
import type { MachineFacts } from '../domain/machine-facts.ts';
import { PlainFailure } from '../lib/plain-failure.ts';
import type { CredentialProvider } from './credentials/provider.ts';
import type { CredentialKind, TokenIssuers } from './credentials/types.ts';
import type { Requests } from './run-requests.ts';
import type { Unmodified, Validator, ValidatorItem } from './validator.ts';

/**
 * What a failure means. The worker decides by it what to do next.
 * - `retry`: the upstream or the network is unwell (timeout, 5xx, cut body, no such name, rate limit). The request is
 *   repeated within the run, then the run, not before `retryAfterMs`.
 * - `invalid`: the adapter does not understand the answer. It may be a page of maintenance: the run is repeated, seldom.
 * - `misconfigured`: an operator must change a setting (401, 403, untrusted certificate, missing rate).
 * - `gone`: the endpoint does not exist any more (404, 410). It never means an empty catalogue. The run is repeated as
 *   seldom as after `invalid`.
 */
export type SourceFailureKind = 'retry' | 'invalid' | 'misconfigured' | 'gone';

/** A source that could not be read. Its message is fit for an operator and holds no secret. */
export class SourceError extends PlainFailure {
  override readonly name = 'SourceError';
  readonly kind: SourceFailureKind;
  /** Milliseconds that the upstream asked to be left alone (Retry-After). */
  readonly retryAfterMs: number | undefined;
  /** It concerns every request to the upstream (429, or no credentials), and so every region: none is asked any more. */
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
  /** It waits for something that an operator has to configure or create. The guard does not count it as a broken row. */
  readonly waits?: true;
}

/**
 * A region that could not be read, or not whole. Its stored machines and its freshness stay as they are. It counts as one
 * row that cannot be used. Where single rows of a region cannot be used, these are rejected instead.
 */
export interface UnreadRegion {
  readonly kind: 'unread';
  readonly regionCode: string;
  /** What could not be read and why. */
  readonly reason: string;
}

/**
 * The freshness that the upstream itself states, RFC 3339, of one region or of the whole source. Without it, data is as
 * fresh as its reading.
 */
export interface DataTime {
  readonly kind: 'as-of';
  readonly time: string;
  readonly regionCode?: string;
}

/** What an adapter yields, in any order. */
export type CatalogueItem =
  | ValidatorItem
  | { readonly kind: 'region'; readonly code: string; readonly name: string }
  | { readonly kind: 'offer'; readonly offer: Offer }
  | RejectedRow
  | UnreadRegion
  | DataTime
  /** The number of rows that the upstream advertised, and the number that arrived. They must agree. */
  | { readonly kind: 'total'; readonly of: string; readonly advertised: number; readonly fetched: number };

export interface JsonAnswer<T> {
  readonly data: T;
  /** How many JSON values the payload has at most; a list in pages has a bound of their sum. */
  readonly values: number;
  readonly headers: Headers;
  /** The address after redirects: relative links in the answer are relative to it. */
  readonly url: URL;
  /** Absent where the upstream names none. */
  readonly validator?: Validator;
}

export interface JsonRequest {
  readonly query?: Readonly<Record<string, string | number>>;
  /** Added to those of every request, or in their place; never credentials. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** What was read of a source of reference rates. */
export type RatesReading = (ReferenceRates & { readonly validator?: Validator }) | Unmodified;

export interface StreamAnswer {
  /**
   * The body, uncompressed, in chunks; to be read once. It fails with SourceError `retry` when it breaks off, or when
   * nothing of it comes for the time that a whole answer may take. A body that ends with its connection may have been
   * cut without a failure: its reader must check that it is whole.
   */
  readonly body: AsyncIterable<Uint8Array>;
  readonly headers: Headers;
  readonly url: URL;
  /** Absent where the upstream names none. */
  readonly validator?: Validator;
}

/**
 * The one way in which adapters read their upstream, see http.ts. A request that fails with `retry` is repeated a few
 * times, with pauses, before it fails for good (http/retries.ts); the job queue repeats whole runs.
 */
export interface SourceHttp {
  /** The source's URL. */
  readonly base: URL;
  /** Whether requests carry credentials. */
  readonly hasCredentials: boolean;
  /**
   * GETs a payload. `path` is joined to the source's base path (`''` is the base itself), or is an absolute URL of
   * the same origin, as `Link` headers have it.
   * @throws SourceError by the meanings that its kinds have; the signal's reason when that aborts
   */
  json<T>(path: string, schema: z.ZodType<T>, request?: JsonRequest): Promise<JsonAnswer<T>>;
  /**
   * GETs a payload that is too large for memory. The deadline starts again with each chunk that arrives.
   * @throws SourceError as `json` does
   */
  stream(path: string, request?: JsonRequest): Promise<StreamAnswer>;
  /** As `json`, on the condition that the payload has changed since the source's rows were stored. */
  jsonIfModified<T>(
    path: string,
    schema: z.ZodType<T>,
    request?: JsonRequest,
  ): Promise<JsonAnswer<T> | Unmodified>;
  /** As `stream`, on the same condition. */
  streamIfModified(path: string, request?: JsonRequest): Promise<StreamAnswer | Unmodified>;
  /**
   * Another address of the same provider, under the same limits. Credentials go only to an address that the adapter
   * knows to be the provider's: the `same`, or the source's API `key` (the same where it has none).
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

/** A source's options in the configuration besides its address, by name; their values are text. */
export type SourceOptions = z.ZodObject<Readonly<Record<string, z.ZodType<string | undefined>>>>;

interface CatalogueReading {
  /** The file's name, and in upper case the prefix of its environment keys: `hetzner` → `HETZNER_URL`, `HETZNER_TOKEN`. */
  readonly id: string;
  /** Paths below the source's URL. In braces: what differs from request to request, or an option that is a URL. */
  readonly endpoints: readonly string[];
  readonly credentials: CredentialKind;
  /** How the provider hands out tokens that live for a while. */
  readonly tokenIssuers?: TokenIssuers;
  /** Its sources may have an API key besides: how it is sent, and what for. */
  readonly apiKey?: { readonly credentials: CredentialKind; readonly describe: string };
  /** What its upstream states of some machine besides size and price; nothing unless given. */
  readonly facts?: readonly (keyof MachineFacts)[];
  /** Default schedule: five cron fields, UTC. */
  readonly schedule: string;
  /** Further notes for operators, as Markdown: they become part of docs/adapters.md. */
  readonly notes?: string;
  /**
   * Reads the whole catalogue once.
   * @throws SourceError when it cannot be read whole. Rows that cannot be used are yielded as `rejected` instead, and
   * regions that cannot be read as `unread`, as long as another one can.
   */
  catalogue(context: SourceContext): AsyncIterable<CatalogueItem>;
}

/** A provider's machine catalogue: code that describes itself, so that registry, docs and conformance suite find it. */
export interface CatalogueAdapter extends CatalogueReading {
  /** What readers see. The id never changes. Ids from 1000 belong to providers that no adapter names. */
  readonly provider: { readonly id: number; readonly name: string };
  /** True where one reading takes too much to be part of `--live`. */
  readonly large?: boolean;
  /** The public address, used with `--live` when the adapter can be read without credentials. */
  readonly baseUrl: string;
  /** The unit in which the source states memory, see domain/machine.ts. */
  readonly memoryUnit: SourceMemoryUnit;
  /** ISO 4217 code of its prices. */
  readonly currency: string;
}

/** Reads a form in which many providers' catalogues come. The source's configuration says which provider it is. */
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

/** What a cluster adapter yields, in any order; after cluster-defaults.ts, with clusters as they are stored. */
export type ClusterItem<Cluster = DescribedCluster> =
  | { readonly kind: 'cluster'; readonly cluster: Cluster }
  | ValidatorItem
  | DataTime
  | RejectedRow;

/** Repeats single requests of a run, see http/retries.ts. */
export interface Retries {
  run<T>(request: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

export interface ClusterContext extends SourceContext {
  /** Where the source is and its credentials, for an adapter whose client library makes its own requests. */
  readonly address: { readonly url: string; readonly credentials: CredentialProvider };
  /** Ends the reading, and requests of `http`, with the signal's reason. */
  readonly signal?: AbortSignal;
  /** How `http` repeats requests, for the same adapters. */
  readonly retries?: Retries;
  /** Where `http` notes requests, for the same adapters. */
  readonly requests?: Requests;
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
  /** Options of its sources, besides those of every source of clusters. */
  readonly options?: SourceOptions;
  /** The public address, where there is one for everybody. */
  readonly baseUrl?: string;
  /** Whether the source's URL may be a path on this machine as well. */
  readonly readsFiles?: boolean;
  /** Further notes for operators, as Markdown: they become part of docs/adapters.md. */
  readonly notes?: string;
  /** Reads every cluster once. @throws SourceError when it cannot be read whole. */
  clusters(context: ClusterContext): AsyncIterable<ClusterItem>;
  /**
   * Yields every cluster at once: first as they are found, then after each change, several changes at a time. A cluster
   * that is missing has been deleted. A lost connection is taken up again; where a change may have been missed,
   * everything is listed again. Ends only by the signal.
   * @throws SourceError as `clusters` does; the caller watches again after a pause
   */
  watch?(context: WatchContext): AsyncIterable<readonly ClusterItem[]>;
}
