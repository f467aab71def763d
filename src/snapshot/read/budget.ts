/** MEMORY_LIMIT: its parts, and what an entry of each costs. */

/**
 * The share of MEMORY_LIMIT that is stored. Evicted bytes stay in the process until V8 collects them, and malloc keeps gaps:
 * together about as many bytes as are stored (docs/performance.md).
 */
const STORED = 1 / 2;

/** Relative sizes of the stored parts. `prices` are price histories, `costs` those of clusters, `unknownTokens` are unknown to PostgreSQL. Tokens in use are documents. */
const PARTS = {
  documents: 21,
  responses: 6,
  machineRegions: 3,
  unknownTokens: 1,
  prices: 1,
  costs: 2,
};
const TOTAL = Object.values(PARTS).reduce((sum, part) => sum + part);

/** The largest index for searches. Its bytes are taken from those of documents. */
const SEARCH_OF_DOCUMENTS = 3 / 4;

/** The parts in bytes. */
export type MemoryBudget = Readonly<Record<keyof typeof PARTS | 'search', number>>;

/** @param limit bytes */
export function memoryBudget(limit: number): MemoryBudget {
  const shares = Object.entries(PARTS).map(([name, part]) => [name, (limit * STORED * part) / TOTAL]);
  const parts = Object.fromEntries(shares) as Record<keyof typeof PARTS, number>;
  return { ...parts, search: parts.documents * SEARCH_OF_DOCUMENTS };
}

/**
 * Overhead of entries in bytes, in addition to their content. `npm run bench -- read memory` measures each constant, and fails if one
 * is too small or 50 % too large.
 */

/** A document: its objects, its id and its LRU entry. Also the whole cost of a known absence. */
export const BYTES_PER_DOCUMENT = 1100;
/** A token: its record, its text and its LRU entry. */
export const BYTES_PER_TOKEN = 800;
/** A cached response: its head in one coding, target, map entries. */
export const BYTES_PER_RESPONSE = 1700;
/** A small entry of an LRU. */
export const BYTES_PER_ENTRY = 430;
