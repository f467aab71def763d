import { type Bar, median, unsteady } from '../support/bar.ts';
import { CHANGED_REGIONS } from './catalogue.ts';
import type { AfterFlush } from './flush.ts';
import type { Round, Step, Syncs } from './rounds.ts';

export interface Results {
  readonly offers: number;
  readonly rounds: readonly Round[];
  /** The same with a tenth of the offers. */
  readonly small: Syncs;
  readonly afterFlush: AfterFlush;
  /** Seconds of a COPY into tables with the schema's foreign keys. */
  readonly copyWithForeignKeys: number;
}

const KINDS = ['first', 'unchanged', 'changed'] as const;
const NAMES = { first: 'first sync', unchanged: 'unchanged sync', changed: '1 % changed sync' } as const;
const RATIOS = { first: 3, unchanged: 0.8, changed: 1.2 } as const;
const MEGABYTE = 1_000_000;

export function barsOf({ rounds, small, afterFlush, copyWithForeignKeys }: Results): Bar[] {
  const over = (figure: (round: Round) => number) => median(rounds.map(figure));
  const steps = rounds.flatMap((round) => KINDS.map((kind) => round[kind]));
  const bars: Bar[] = [{ what: 'bare COPY', found: over(({ copy }) => copy), unit: 's' }];
  for (const kind of KINDS) {
    bars.push(
      { what: NAMES[kind], found: over((round) => syncSeconds(round[kind])), unit: 's' },
      {
        what: `${NAMES[kind]} / bare COPY`,
        found: over((round) => syncSeconds(round[kind]) / round.copy),
        unit: '×',
        limit: RATIOS[kind],
        unsure: unsteady(
          'the bare COPY',
          rounds.map(({ copy }) => copy),
        ),
      },
      {
        what: `publishing after it`,
        found: over((round) => round[kind].measured.publish.seconds),
        unit: 's',
      },
    );
  }
  bars.push(
    effect('unchanged: catalogue rows written', rounds, 'unchanged', 'rowsWritten', 0),
    effect('unchanged: versions bumped', rounds, 'unchanged', 'versions', 0),
    effect('unchanged: documents published', rounds, 'unchanged', 'documents', 0),
    effect('1 % changed: regions bumped', rounds, 'changed', 'versions', CHANGED_REGIONS),
    // The list of each, and the columns for searches.
    effect('1 % changed: documents published', rounds, 'changed', 'documents', 2 * CHANGED_REGIONS),
  );
  for (const [when, figure] of MEMORY) {
    bars.push({ what: `peak memory, ${when}, a tenth`, found: highest(small, figure), unit: 'MB' });
    bars.push({
      what: `peak memory, ${when}, all offers`,
      found: over((round) => highest(round, figure)),
      unit: 'MB',
      limit: 300,
    });
  }
  for (const [when, figure] of LOOP) {
    bars.push({
      what: `event-loop delay p99.9, ${when}`,
      found: over((round) => highest(round, (step) => figure(step)?.loopP999 ?? 0)),
      unit: 'ms',
      limit: 50,
    });
    bars.push({
      what: 'its worst',
      found: over((round) => highest(round, (step) => figure(step)?.loopMax ?? 0)),
      unit: 'ms',
    });
  }
  const { measured, reading, redisBytes } = afterFlush;
  return [
    ...bars,
    { what: 'locks lost, over all jobs', found: sum(steps, locksLost), unit: '', limit: 0, bound: 'exactly' },
    { what: 'after a flush: publishing all', found: measured.publish.seconds, unit: 's' },
    { what: 'after a flush: Redis memory', found: redisBytes / MEGABYTE, unit: 'MB' },
    { what: 'after a flush: reads meanwhile', found: reading.count, unit: '' },
    {
      what: 'after a flush: reads unanswered',
      found: reading.unavailable,
      unit: '',
      limit: 0,
      bound: 'exactly',
    },
    { what: 'after a flush: wrong answers', found: reading.wrong, unit: '', limit: 0, bound: 'exactly' },
    { what: 'after a flush: read, median', found: reading.p50, unit: 'ms' },
    { what: 'after a flush: read, p99', found: reading.p99, unit: 'ms' },
    { what: 'COPY with the foreign keys checked row by row', found: copyWithForeignKeys, unit: 's' },
  ];
}

const MEMORY: readonly (readonly [string, (step: Step) => number])[] = [
  ['syncing', ({ measured }) => (measured.sync?.rssPeak ?? 0) / MEGABYTE],
  ['publishing too', ({ measured }) => measured.publish.rssPeak / MEGABYTE],
];
const LOOP = [
  ['syncing', (step: Step) => step.measured.sync],
  ['publishing', (step: Step) => step.measured.publish],
] as const;

const syncSeconds = ({ measured }: Step): number => measured.sync?.seconds ?? Number.NaN;
const locksLost = ({ measured }: Step): number => measured.locksLost;
const sum = (steps: readonly Step[], figure: (step: Step) => number): number =>
  steps.reduce((total, step) => total + figure(step), 0);
const highest = (syncs: Syncs, figure: (step: Step) => number): number =>
  Math.max(...KINDS.map((kind) => figure(syncs[kind])));

/** The round with the largest deviation from its goal. */
function effect(
  what: string,
  rounds: readonly Round[],
  kind: keyof Syncs,
  name: keyof Step['effects'],
  limit: number,
): Bar {
  const counts = rounds.map((round) => round[kind].effects[name]);
  const found = counts.reduce((worst, count) =>
    Math.abs(count - limit) > Math.abs(worst - limit) ? count : worst,
  );
  return { what, found, unit: '', limit, bound: 'exactly' };
}
