/** The operations of a history, in an order that its seed decides. */
import { randomOf, wholeNumber } from '../support/random.ts';

/** The relative frequency of each kind. */
const WEIGHTS = {
  reprice: 14,
  withdraw: 6,
  return: 6,
  'add machine': 4,
  'make cluster': 5,
  'change cluster': 8,
  'delete cluster': 3,
  sync: 20,
  'sync by queue': 8,
  'make token': 3,
  'revoke token': 6,
  'make organization': 1,
  'delete organization': 3,
  'restart reader': 3,
  'start from disk': 3,
  'restart worker': 2,
  'kill worker': 2,
  'kill cache': 2,
  'hang cache': 3,
  'flush cache': 4,
  'publish unheard': 4,
  'evict stream': 2,
  'remember cache': 4,
  'cache goes back': 4,
  'kill queue': 1,
  'hang queue': 1,
  'kill PostgreSQL': 2,
  'hang PostgreSQL': 3,
  'cut PostgreSQL': 3,
  'pass time': 8,
  heal: 10,
} as const;

export type Kind = keyof typeof WEIGHTS;

export const isKind = (name: string): name is Kind => Object.hasOwn(WEIGHTS, name);

export interface Operation {
  readonly does: Kind;
  /** Selects the object, modulo the number of objects. An operation does not depend on earlier ones. */
  readonly pick: number;
  readonly value: number;
}

const SHORTEST = 10;
const LONGEST = 28;
const KINDS = Object.entries(WEIGHTS) as [Kind, number][];
const ALL = KINDS.reduce((sum, [, weight]) => sum + weight, 0);

/** Returns the operations of a seed, always the same ones. Their timing varies. */
export function operationsOf(seed: number): Operation[] {
  const random = randomOf(seed);
  const count = SHORTEST + wholeNumber(random, LONGEST - SHORTEST + 1);
  return Array.from({ length: count }, () => ({
    does: kindOf(random),
    pick: wholeNumber(random, 1000),
    value: 1 + wholeNumber(random, 900),
  }));
}

/** Returns true if the operations of a seed have these kinds in this order, with any others between them. */
export function hasInOrder(seed: number, kinds: readonly Kind[]): boolean {
  let found = 0;
  for (const { does } of operationsOf(seed)) if (does === kinds[found]) found += 1;
  return found === kinds.length;
}

function kindOf(random: () => number): Kind {
  let at = random() * ALL;
  for (const [kind, weight] of KINDS) {
    at -= weight;
    if (at < 0) return kind;
  }
  return 'pass time';
}

export const shownOperation = ({ does, pick, value }: Operation): string => `${does} (${pick}, ${value})`;
