/** Addresses that the console requests, each with its bar. Add those of a new page here. */

export interface Facts {
  /** A held batch, a machine with a price history, a source with rejected rows. */
  readonly batch: number;
  readonly machine: number;
  readonly source: string;
  /** Of the largest provider, which has a fifth of all machines, of one with a twenty-fifth, and of a small one. */
  readonly largest: number;
  readonly large: number;
  readonly small: number;
}

export interface Address {
  readonly what: string;
  readonly path: string;
  /** Largest accepted median in milliseconds. */
  readonly limit: number;
}

/** A filter of a table, and what a page shows next to its table. */
const FILTER_MS = 200;
/** The first view as a whole, and a search of all machines, which scans their table. */
const FIRST_MS = 1000;

export function addresses(facts: Facts): Address[] {
  const { batch, machine, source, largest, large, small } = facts;
  const filter = (what: string, query: string): Address => ({
    what: `machines: ${what}`,
    path: `/api/machines?limit=100${query}`,
    limit: FIRST_MS,
  });
  const points = (what: string, query: string): Address => ({
    what: `price against size: ${what}`,
    path: `/api/machines/points?${query}`,
    limit: FIRST_MS,
  });
  return [
    { what: 'overview', path: '/api/overview', limit: FIRST_MS },
    { what: 'charts of a day', path: '/api/charts', limit: FILTER_MS },
    { what: 'places', path: '/api/places', limit: FILTER_MS },
    filter('all', ''),
    filter('per cpu, dearest first', '&sort=price_per_cpu&order=desc'),
    filter('per GB', '&sort=price_per_gb'),
    filter('by region', '&sort=region'),
    filter('the largest provider', `&provider=${largest}`),
    filter('a large provider, per GB', `&provider=${large}&sort=price_per_gb`),
    filter('a small provider', `&provider=${small}`),
    filter('a region code', '&region=zone-001'),
    filter('a frequent name', '&q=general'),
    filter('a seldom name', '&q=x64.77'),
    filter('no such name', '&q=no-such-name'),
    filter('a frequent name, by region', '&q=general&sort=region'),
    filter('a name of the largest provider', `&q=.77&provider=${largest}`),
    filter('excluded', '&published=no'),
    filter('excluded or not, per GB', '&published=all&sort=price_per_gb'),
    filter('cpu and memory', '&min_cpu=8&max_cpu=8&min_ram=32&max_ram=32'),
    filter('excluded, by cpu', '&published=no&min_cpu=48'),
    filter('page 10', '&offset=1000'),
    points('all', ''),
    points('a large provider', `provider=${large}`),
    points('a frequent name', 'q=general'),
    { what: 'machine', path: `/api/machines/${machine}`, limit: FILTER_MS },
    { what: 'source', path: `/api/sources/${source}`, limit: FIRST_MS },
    { what: 'timeline', path: `/api/sources/${source}/timeline?limit=50`, limit: FILTER_MS },
    { what: 'rejected rows, searched', path: `/api/sources/${source}/rejected?q=type-7`, limit: FILTER_MS },
    { what: 'excluded machines', path: `/api/sources/${source}/excluded`, limit: FIRST_MS },
    { what: 'held batches', path: '/api/held', limit: FILTER_MS },
    { what: 'held batch', path: `/api/held/${batch}`, limit: FIRST_MS },
    { what: 'held batch, searched', path: `/api/held/${batch}?q=zone-003`, limit: FILTER_MS },
  ];
}
