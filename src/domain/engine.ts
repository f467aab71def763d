/** Database engines in one vocabulary, for clusters and for plans of managed databases. */

export const ENGINES = [
  'alloydbomni',
  'cassandra',
  'clickhouse',
  'clickhouse-keeper',
  'dragonfly',
  'elasticsearch',
  'influxdb',
  'kafka',
  'm3db',
  'mariadb',
  'mongodb',
  'mysql',
  'opensearch',
  'postgresql',
  'redis',
  'valkey',
] as const;

export type Engine = (typeof ENGINES)[number];

/** Other words of providers, in lower case. The advanced ones are DigitalOcean's Advanced Edition of the same engine. */
const SAME: ReadonlyMap<string, Engine> = new Map([
  ['advanced_mysql', 'mysql'],
  ['advanced_pg', 'postgresql'],
  ['apache-kafka', 'kafka'],
  ['mongo', 'mongodb'],
  ['pg', 'postgresql'],
  ['postgres', 'postgresql'],
]);

export function isEngine(word: string): word is Engine {
  return (ENGINES as readonly string[]).includes(word);
}

/** Returns the word of the vocabulary for a provider's word; a word that it lacks is returned as stated. */
export function engineNamed(stated: string): string {
  const word = stated.toLowerCase();
  return isEngine(word) ? word : (SAME.get(word) ?? stated);
}

/** What runs on a cluster, as far as its source states it. An absent field is unknown. */
export interface Software {
  /** A word of `ENGINES`, or the source's own word for an engine that is not in it. */
  readonly engine?: string;
  /** As stated, e.g. `17`, `8.4.8` or `v25`. */
  readonly version?: string;
  /** When the source itself ends its support of this version: `YYYY-MM-DD`. */
  readonly endOfLife?: string;
}
