import { describe, expect, it } from 'vitest';
import { barsOf, percentile, type Results } from '../../bench/read/bars.ts';
import { chart } from '../../bench/read/chart.ts';
import { verdict } from '../../bench/support/bar.ts';

const run = (p99: number) => ({ p50: 1, p99, max: 9, answered: 1000 });

const rates = (perSecond: number[], cpu: number[]) => ({ perSecond, cpu });
const missed = (mine: number[], peer: number[], share = 1) => ({
  fleetbook: rates([1000, 900], mine),
  peer: rates([900, 800], peer),
  contract: rates([], []),
  share,
});

/** Rounds on a machine that becomes slower: the ratio within each round stays the same. */
function results(changed: Partial<Results> = {}): Results {
  const starts = { fleetbook: [300, 300], fastify: [200, 200] };
  return {
    machine: {
      cores: 2,
      pinned: true,
      node: '26.10.0',
      rounds: 2,
      seconds: 1,
      at: '2026-01-02T03:04:05.678Z',
    },
    hot: {
      targets: [
        {
          id: 'list',
          what: 'machines <3 KB>',
          body: 3000,
          perSecond: {
            fleetbook: [950, 475],
            bare: [1000, 500],
            redis: [500, 250],
            drizzle: [50, 25],
            nginx: [1250, 625],
          },
          cpu: { fleetbook: [100, 100], bare: [96, 96], redis: [], drizzle: [], nginx: [] },
        },
        {
          id: 'unchanged',
          what: '304',
          body: 0,
          perSecond: { fleetbook: [800, 850], bare: [1000, 1000] },
          cpu: { fleetbook: [100, 200], bare: [80, 170] },
        },
      ],
      halfLoad: { rate: 500, fleetbook: [run(1.4), run(2.8)], bare: [run(1), run(2)] },
    },
    misses: {
      redis: {
        list: { ...missed([50, 100], [40, 80]), contract: rates([900, 800], [55, 110]) },
        machine: { ...missed([50, 100], [30, 60]), contract: rates([900, 800], [45, 90]) },
        clusters: missed([50, 100], [50, 100], 0.5),
        cluster: missed([50, 100], [50, 100]),
      },
      fresh: [
        { fleetbook: rates([100, 200], [90, 60]), peer: rates([150, 250], [60, 54]) },
        { fleetbook: rates([300, 300], [90, 60]), peer: rates([200, 200], [60, 54]) },
      ],
      postgres: { lists: missed([50, 100], [100, 200]), clusters: missed([50, 100], [60, 120]) },
    },
    singleFlight: { callers: 1000, answered: 1000, queries: 2 },
    starts,
    processes: { why: 'one core' },
    coherence: { readers: 3, delays: [10, 20, 30], older: 0 },
    scale: undefined,
    ...changed,
  };
}

const barNamed = (what: string, of = results()) => {
  const bar = barsOf(of).find((one) => one.what === what);
  if (!bar) throw new Error(`there is no bar "${what}"`);
  return { found: bar.found, verdict: verdict(bar), note: bar.note };
};

describe('the bars of reading', () => {
  it('compare values of the same round', () => {
    expect(barNamed('machines <3 KB> / bare node:http')).toMatchObject({ found: 0.95, verdict: '' });
    const cpu = (what: string) => barNamed(`${what}: CPU time of bare node:http / fleetbook`);
    expect(cpu('machines <3 KB>')).toMatchObject({ found: 0.96, verdict: 'PASS' });
    expect(cpu('304')).toMatchObject({ found: 0.825, verdict: 'MISSED' });
    expect(barNamed('machines <3 KB> / nginx')).toMatchObject({ found: 0.76, verdict: 'PASS' });
    expect(barNamed('304 / bare node:http')).toMatchObject({ found: 0.825, verdict: '' });
    expect(barNamed('p99 at half load / bare node:http')).toMatchObject({ found: 1.4, verdict: 'PASS' });
  });

  it('do not count misses that memory answered', () => {
    const bar = (what: string) => barNamed(`misses, ${what} / fleetbook`);
    expect(bar('Redis, a list of 3 KB: CPU time of Fastify + Redis')).toMatchObject({
      found: 0.8,
      verdict: '',
    });
    expect(bar('Redis, a list of 3 KB: CPU time of Fastify + Redis with the contract')).toMatchObject({
      found: 1.1,
      verdict: 'PASS',
    });
    expect(bar('Redis, one machine: CPU time of Fastify + Redis with the contract')).toMatchObject({
      found: 0.9,
      verdict: 'MISSED',
    });
    expect(bar('Redis, clusters: CPU time of Fastify + Redis with the contract')).toMatchObject({
      found: undefined,
      verdict: 'not measured',
    });
    expect(bar('PostgreSQL, lists: CPU time of Fastify + Drizzle')).toMatchObject({
      found: 2,
      verdict: 'PASS',
    });
    expect(bar('PostgreSQL, clusters: CPU time of Fastify + Drizzle')).toMatchObject({
      found: 1.2,
      verdict: 'MISSED',
    });
  });

  it('have each of the first seconds of a reader', () => {
    const second = (number: number) =>
      barNamed(
        `second ${number} of a fresh reader, lists: CPU time of Fastify + Redis with the contract / fleetbook`,
      );
    expect(second(1)).toMatchObject({ found: expect.closeTo(2 / 3, 6), verdict: '' });
    expect(second(2)).toMatchObject({ found: 0.9, verdict: '' });
    // 300 of 400, and 600 of 400.
    expect(barNamed('answers in these seconds / Fastify + Redis with the contract')).toMatchObject({
      found: 1.125,
      verdict: 'PASS',
    });
  });

  it('do not judge the latency at half load where the bare server itself is late', () => {
    const ratioAt = (bare: readonly number[]) => {
      const { hot } = results();
      const halfLoad = { rate: 500, fleetbook: bare.map((p99) => run(2 * p99)), bare: bare.map(run) };
      return barNamed('p99 at half load / bare node:http', results({ hot: { ...hot, halfLoad } }));
    };
    expect(ratioAt([1, 2]).verdict).toBe('MISSED');
    expect(ratioAt([11, 12])).toMatchObject({ found: 2, verdict: 'not measurable' });
    expect(ratioAt([1, 4])).toMatchObject({ found: 2, verdict: 'not measurable' });
  });

  it('use a second query for a miss of the bar', () => {
    expect(barNamed('their queries').verdict).toBe('MISSED');
  });

  it('name each unmeasured value and the reason', () => {
    expect(barNamed('--processes N / N × one')).toEqual({
      found: undefined,
      verdict: 'not measured',
      note: 'one core',
    });
    const [target, ...others] = results().hot.targets;
    if (!target) throw new Error('unreachable: the results have targets');
    const { nginx: _, ...perSecond } = target.perSecond;
    const without = results({ hot: { ...results().hot, targets: [{ ...target, perSecond }, ...others] } });
    expect(barNamed('machines <3 KB> / nginx', without)).toMatchObject({
      verdict: 'not measured',
      note: expect.stringContaining('apt-get install nginx-light'),
    });
  });

  it('judge coherence by the slowest hundredth', () => {
    expect(barNamed('commit to visible on 3 readers, p99')).toMatchObject({ found: 30, verdict: 'PASS' });
    const late = results({ coherence: { readers: 3, delays: [10, 20, 300], older: 0 } });
    expect(barNamed('commit to visible on 3 readers, p99', late)).toMatchObject({
      found: 300,
      verdict: 'MISSED',
    });
  });
});

it('a percentile is one of the values', () => {
  expect(percentile([3, 1, 2], 0.5)).toBe(2);
  expect(percentile([3, 1, 2], 1)).toBe(3);
  expect(percentile([], 0.5)).toBeNaN();
});

it('the chart has a bar for each server of each target, and names the machine', () => {
  const svg = chart(results());
  expect(svg.match(/<rect class="fleetbook" x="150"/g)).toHaveLength(2);
  expect(svg.match(/<rect class="nginx" x="150"/g)).toHaveLength(1);
  expect(svg).toContain('machines &lt;3 KB&gt;');
  expect(svg).toContain('2026-01-02; 2 cores, server and load pinned to one each; Node 26.10.0');
  expect(svg).not.toContain('NaN');
});
