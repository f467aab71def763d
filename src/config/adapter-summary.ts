/** What the configuration and the commands show of each adapter. */
import { adapter as ecb } from '../sources/rates/ecb.ts';
import { catalogueAdapters, clusterAdapters } from '../sources/registry.ts';
import type { AnyCatalogueAdapter, ClusterAdapter, SourceOptions } from '../sources/source.ts';

export interface AdapterSummary {
  /** The default schedule. */
  readonly schedule: string;
  /** Absent if the source's option `provider` names it. */
  readonly provider?: { readonly id: number; readonly name: string };
  /** The currency of all prices, unless the source's option `currency` names another. Absent if each row names its own. */
  readonly currency?: string;
  /** Whether the control plane reports changes at once, between the runs of the schedule. */
  readonly watched?: boolean;
  /** The default address. */
  readonly url?: string;
  /** How a token is sent, a `CredentialKind`; `none` if the adapter uses no token. */
  readonly credentials: string;
  /** Whether a source may have an API key as well. */
  readonly apiKey?: boolean;
  /** The options with their defaults; null for an option without a default. */
  readonly options?: Readonly<Record<string, string | null>>;
}

type Summaries = Readonly<Record<string, AdapterSummary>>;

/** By id. */
export const CATALOGUES: Summaries = Object.fromEntries(
  catalogueAdapters.map((adapter) => {
    const currency = 'options' in adapter ? defaultOf(adapter.options.shape.currency) : adapter.currency;
    const { schedule, provider } = adapter;
    const stated = { ...(provider && { provider }), ...(currency === undefined ? {} : { currency }) };
    return [adapter.id, { schedule, ...stated, ...settingsOf(adapter) }];
  }),
);

/** By id. */
export const CLUSTERS: Summaries = Object.fromEntries(
  clusterAdapters.map((adapter) => {
    const { schedule } = adapter;
    return [adapter.id, { schedule, ...(adapter.watch && { watched: true }), ...settingsOf(adapter) }];
  }),
);

export const RATES: AdapterSummary = {
  schedule: ecb.schedule,
  url: ecb.baseUrl,
  credentials: ecb.credentials,
};

function settingsOf(
  adapter: AnyCatalogueAdapter | ClusterAdapter,
): Pick<AdapterSummary, 'url' | 'credentials' | 'apiKey' | 'options'> {
  const { credentials } = adapter;
  const url = 'baseUrl' in adapter ? adapter.baseUrl : undefined;
  const shape: SourceOptions['shape'] = ('options' in adapter && adapter.options?.shape) || {};
  const options = Object.entries(shape).map(([name, option]) => [name, defaultOf(option) ?? null]);
  return {
    ...(url === undefined ? {} : { url }),
    credentials,
    ...('apiKey' in adapter && adapter.apiKey ? { apiKey: true } : {}),
    ...(options.length > 0 ? { options: Object.fromEntries(options) } : {}),
  };
}

function defaultOf(option: { safeParse(given: unknown): { data?: string | undefined } } | undefined) {
  return option?.safeParse(undefined).data;
}
