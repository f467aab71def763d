/** Decides whether a series of samples grows or only varies. */

export interface Growth {
  /** Lower quartiles of the first and the last third. */
  readonly from: number;
  readonly to: number;
  readonly grows: boolean;
}

/** The allowed growth of a series: a share of its first third, or an amount, whichever is larger. */
export interface Allowance {
  readonly share: number;
  readonly absolute: number;
}

/**
 * Compares lower quartiles: a fault takes resources for a while, and a leak for ever.
 * @param samples in order, after warm-up
 */
export function growthOf(samples: readonly number[], { share, absolute }: Allowance): Growth {
  const third = Math.floor(samples.length / 3);
  if (third < 3) throw new Error(`${samples.length} samples say nothing: run it for longer`);
  const [from, to] = [lowerQuartile(samples.slice(0, third)), lowerQuartile(samples.slice(-third))];
  return { from, to, grows: to - from > Math.max(from * share, absolute) };
}

function lowerQuartile(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 4)] ?? 0;
}
