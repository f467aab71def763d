/** The bytes of MEMORY_LIMIT, shared out among all that a reader keeps. */
export interface MemoryBudget {
  readonly documents: number;
  /** The index for searches at the most: what it takes, documents do not have. */
  readonly search: number;
  readonly responses: number;
  readonly machineRegions: number;
  readonly acceptedTokens: number;
  /** Tokens that are known to be unknown. */
  readonly unknownTokens: number;
  /** Price histories. */
  readonly prices: number;
}

/**
 * What left memory stays in the process until V8 collects it, and leaves gaps that malloc does not give back: about as
 * much again as is kept, by docs/performance.md.
 */
const KEPT = 1 / 2;

/** Parts of what is kept. */
const PARTS: Omit<MemoryBudget, 'search'> = {
  documents: 20,
  responses: 6,
  machineRegions: 3,
  acceptedTokens: 1,
  unknownTokens: 1,
  prices: 1,
};

/** Of what documents have. */
const SEARCH_OF_DOCUMENTS = 3 / 4;

/** @param limit bytes */
export function memoryBudget(limit: number): MemoryBudget {
  const part = (limit * KEPT) / Object.values(PARTS).reduce((sum, each) => sum + each, 0);
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
