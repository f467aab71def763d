/** Writes docs/adapters.md and src/config/adapters.json, which are made from the adapters: part of `npm run docs`. */
import { writeFileSync } from 'node:fs';
import type { AdapterSummary } from '../../src/config/named-sources.ts';
import { inPackage } from '../../src/config/package.ts';
import { adapter as ecb } from '../../src/sources/rates/ecb.ts';
import { catalogueAdapters, clusterAdapters } from '../../src/sources/registry.ts';
import type { AnyCatalogueAdapter, ClusterAdapter, SourceOptions } from '../../src/sources/source.ts';
import { adapterPage } from './describe.ts';

export const SUMMARIES_FILE = 'src/config/adapters.json';

/** What is known of the adapters without loading them, as the file has it. */
export function adapterSummaries(): string {
  const catalogues = catalogueAdapters.map((adapter) => [adapter.id, summaryOf(adapter)]);
  const clusters = clusterAdapters.map((adapter) => [
    adapter.id,
    { schedule: adapter.schedule, ...(adapter.watch && { watched: true }), ...settingsOf(adapter) },
  ]);
  const all = {
    catalogues: Object.fromEntries(catalogues),
    clusters: Object.fromEntries(clusters),
    rates: { [ecb.id]: { schedule: ecb.schedule, url: ecb.baseUrl, credentials: ecb.credentials } },
  };
  return `${JSON.stringify(all, null, 2)}\n`;
}

function summaryOf({ schedule, provider, ...adapter }: AnyCatalogueAdapter): AdapterSummary {
  const currency = 'options' in adapter ? defaultOf(adapter.options.shape.currency) : adapter.currency;
  return {
    schedule,
    ...(provider && { provider }),
    ...(currency === undefined ? {} : { currency }),
    ...settingsOf(adapter),
  };
}

/** What its sources may be told, and what holds unless they are. */
function settingsOf(
  adapter: Omit<AnyCatalogueAdapter, 'schedule' | 'provider'> | ClusterAdapter,
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

if (import.meta.main) {
  writeFileSync(inPackage('docs/adapters.md'), adapterPage(catalogueAdapters, clusterAdapters));
  writeFileSync(inPackage(SUMMARIES_FILE), adapterSummaries());
}
