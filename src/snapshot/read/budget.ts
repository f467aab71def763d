/** The bytes of MEMORY_LIMIT, shared out among all that a reader keeps. */
export interface MemoryBudget {
  readonly documents: number;
  readonly machineRegions: number;
  /** Tokens that are known to be unknown. */
  readonly unknownTokens: number;
  /** Price histories. */
  readonly prices: number;
  /** Remembered answers of one operation. */
  readonly answers: number;
  /** Tokens as they are presented. */
  readonly presentedTokens: number;
}

/** Operations whose answers are remembered. */
const OPERATIONS = 5;
const MACHINE_REGIONS = 1 / 16;
const UNKNOWN_TOKENS = 1 / 64;
const PRICES = 1 / 64;
const ANSWERS = 1 / 320;
const PRESENTED_TOKENS = 1 / 32;
/**
 * What was let go stays in the process until V8 collects it, and leaves gaps that malloc does not give back: about as
 * much again as there is of documents, by docs/performance.md.
 */
const UNCOLLECTED = 15 / 32;
/** Documents have the rest. */
const DOCUMENTS =
  1 - MACHINE_REGIONS - UNKNOWN_TOKENS - PRICES - OPERATIONS * ANSWERS - PRESENTED_TOKENS - UNCOLLECTED;

/** @param limit bytes */
export function memoryBudget(limit: number): MemoryBudget {
  return {
    documents: limit * DOCUMENTS,
    machineRegions: limit * MACHINE_REGIONS,
    unknownTokens: limit * UNKNOWN_TOKENS,
    prices: limit * PRICES,
    answers: limit * ANSWERS,
    presentedTokens: limit * PRESENTED_TOKENS,
  };
}
