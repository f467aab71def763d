/** The parts of MEMORY_LIMIT, in bytes. */
export interface MemoryBudget {
  readonly documents: number;
  /** The largest index for searches. Its bytes are taken from those of documents. */
  readonly search: number;
  readonly responses: number;
  readonly machineRegions: number;
  readonly acceptedTokens: number;
  readonly unknownTokens: number;
  readonly prices: number;
}

/**
 * The share of the limit that is stored. Evicted bytes stay in the process until V8 collects them, and malloc keeps gaps:
 * together about as many bytes as are stored (docs/performance.md).
 */
const STORED = 1 / 2;

const PARTS: Omit<MemoryBudget, 'search'> = {
  documents: 20,
  responses: 6,
  machineRegions: 3,
  acceptedTokens: 1,
  unknownTokens: 1,
  prices: 1,
};

/** The share of the bytes of documents. */
const SEARCH_OF_DOCUMENTS = 3 / 4;

export function memoryBudget(limit: number): MemoryBudget {
  const part = (limit * STORED) / Object.values(PARTS).reduce((sum, each) => sum + each, 0);
  const share = (name: keyof typeof PARTS) => PARTS[name] * part;
  return {
    documents: share('documents'),
    search: share('documents') * SEARCH_OF_DOCUMENTS,
    responses: share('responses'),
    machineRegions: share('machineRegions'),
    acceptedTokens: share('acceptedTokens'),
    unknownTokens: share('unknownTokens'),
    prices: share('prices'),
  };
}
