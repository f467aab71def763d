/** The last runs of a source as bars. Height and colour show the outcome. */
import { useState } from 'preact/hooks';
import type { StripRun } from '../../../../src/features/console/routes/answers.ts';
import { utc } from '../lib/format.ts';

const BAR = 6;
const HEIGHT = 22;
const SLOTS = 24;

/** Pixels and class of a bar, by the outcome of its run. */
const BARS: Readonly<Record<string, readonly [height: number, tone: string]>> = {
  changed: [16, 'good'],
  unchanged: [8, 'good'],
  held: [22, 'warn'],
  failed: [22, 'bad'],
  interrupted: [22, 'bad'],
  superseded: [4, 'note'],
  cancelled: [4, 'note'],
  running: [12, 'note'],
};

export function RunStrip({ runs }: { runs: readonly StripRun[] }) {
  const [pointed, setPointed] = useState<StripRun>();
  const counts = new Map<string, number>();
  for (const { outcome } of runs) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  const outcomes = [...counts].map(([outcome, n]) => `${n} ${outcome}`).join(', ');
  const label = runs.length === 0 ? 'no run yet' : `last ${runs.length} runs: ${outcomes}`;
  const from = SLOTS - runs.length;
  // One element for all bars of a colour: the overview has thousands of bars.
  const shapes = new Map<string, string>();
  for (const [index, { outcome }] of runs.entries()) {
    const [height, tone] = BARS[outcome] ?? [4, 'note'];
    const bar = `M${(from + index) * BAR} ${HEIGHT}v${-height}h${BAR - 2}v${height}z`;
    shapes.set(tone, (shapes.get(tone) ?? '') + bar);
  }
  return (
    <svg
      class="strip"
      role="img"
      aria-label={label}
      width={SLOTS * BAR}
      height={HEIGHT}
      onPointerMove={({ offsetX }) => setPointed(runs[Math.floor(offsetX / BAR) - from])}
    >
      {pointed && <title>{`${pointed.outcome}, ${utc(pointed.startedAt)}`}</title>}
      {[...shapes].map(([tone, bars]) => (
        <path key={tone} class={tone} d={bars} />
      ))}
    </svg>
  );
}
