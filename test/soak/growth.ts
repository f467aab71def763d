/** Whether something that is sampled for long grows, or only moves. */

export interface Growth {
  /** Lower quartiles of the first and of the last third. */
  readonly from: number;
  readonly to: number;
  readonly grows: boolean;
}

/** What a series may have more of at its end: a share of its beginning, or so much, whichever is more. */
export interface Allowance {
  readonly share: number;
  readonly absolute: number;
}

/**
 * By lower quartiles: what a fault takes is given back, what leaks is not.
 * @param samples in order, warmed up
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
