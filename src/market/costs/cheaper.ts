/**
 * The one rule for a cheaper machine. A machine is cheaper than another one if it has at least the CPUs and the bytes of memory, the
 * same architecture and kind of CPU where both are known, and costs less. The match `size` drops the two facts. Pure.
 */
import { type Amount, exactMonth, machineAmount, type NodePrice } from './cost.ts';

export const MATCHES = ['kind', 'size'] as const;
/** How far a cheaper machine must fit. `kind`: size, architecture and kind of CPU; `size`: CPUs and memory alone. */
export type Match = (typeof MATCHES)[number];

/** What machines are compared by. Null: unknown. */
export interface Sized {
  readonly cpu: number;
  /** Of memory. */
  readonly bytes: number;
  readonly architecture: string | null;
  readonly cpuKind: string | null;
}

export interface Candidate extends Sized {
  readonly id: number;
  readonly node: NodePrice;
}

export interface Ranked<C extends Candidate> {
  readonly candidate: C;
  /** What a month of one node costs, exactly: see `exactMonth`. */
  readonly month: bigint;
}

export interface Cheaper<C extends Candidate> {
  readonly candidate: C;
  /** Of the machines of all nodes. */
  readonly amount: Amount;
  /** In a month, in units of an amount. Above 0. */
  readonly saving: bigint;
}

export interface WantedSaving {
  readonly match: Match;
  readonly limit: number;
  /** The least saving in a month, in units of an amount. */
  readonly least: bigint;
}

/** The first cheaper machine that has the same kind of CPU. */
export const BEST: WantedSaving = { match: 'kind', limit: 1, least: 0n };

export function fits(machine: Sized, than: Sized, match: Match): boolean {
  if (machine.cpu < than.cpu || machine.bytes < than.bytes) return false;
  return (
    match === 'size' ||
    (isSame(machine.architecture, than.architecture) && isSame(machine.cpuKind, than.cpuKind))
  );
}

const isSame = (a: string | null, b: string | null): boolean => a === null || b === null || a === b;

/** Sorts candidates by what a month of one node costs, then by id. */
export function rank<C extends Candidate>(candidates: readonly C[]): Ranked<C>[] {
  return candidates
    .map((candidate) => ({ candidate, month: exactMonth(candidate.node) }))
    .sort((a, b) => (a.month === b.month ? a.candidate.id - b.candidate.id : a.month < b.month ? -1 : 1));
}

/**
 * Returns the cheaper machines for a cluster, the largest saving first.
 * @param than the machine of the cluster
 * @param ranked as `rank` returns them
 */
export function cheaperMachines<C extends Candidate>(
  than: Candidate,
  nodes: number,
  ranked: readonly Ranked<C>[],
  { match, limit, least }: WantedSaving,
): Cheaper<C>[] {
  const current = machineAmount(than.node, nodes).perMonth;
  const found: Cheaper<C>[] = [];
  for (const { candidate } of ranked) {
    if (found.length === limit) break;
    if (!fits(candidate, than, match)) continue;
    const amount = machineAmount(candidate.node, nodes);
    const saving = current - amount.perMonth;
    // All later ones cost as much or more.
    if (saving <= 0n || saving < least) break;
    found.push({ candidate, amount, saving });
  }
  return found;
}
