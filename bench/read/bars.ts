import { type Bar, median, spread, unsteady } from '../support/bar.ts';
import type { Coherence } from './coherence.ts';
import type { Hot, HotTarget } from './hot.ts';
import type { Figures, Miss, Misses, RedisMiss } from './misses.ts';
import type { Paced } from './paced.ts';
import type { Processes } from './processes.ts';
import type { Scale } from './scale.ts';
import type { SingleFlight } from './single-flight.ts';
import type { Starts } from './start-time.ts';
import type { Server } from './targets.ts';

export interface Results {
  readonly machine: {
    readonly cores: number;
    readonly pinned: boolean;
    readonly node: string;
    readonly rounds: number;
    readonly seconds: number;
    /** Start of the run, RFC 3339. */
    readonly at: string;
  };
  readonly hot: Hot;
  readonly misses: Misses;
  readonly singleFlight: SingleFlight;
  readonly starts: Starts;
  readonly processes: Processes | { readonly why: string };
  readonly coherence: Coherence;
  /** Only on request. */
  readonly scale: Scale | undefined;
}

interface Peer {
  readonly server: Server;
  readonly name: string;
  /** Absent for values without a goal. */
  readonly limit?: number;
  readonly goal?: number;
}

const PEERS: readonly Peer[] = [
  { server: 'bare', name: 'bare node:http' },
  { server: 'redis', name: 'Fastify + Redis', limit: 1.3 },
  { server: 'drizzle', name: 'Fastify + Drizzle', limit: 10 },
  { server: 'nginx', name: 'nginx', limit: 0.65, goal: 0.75 },
];

/**
 * Minimum share of answers that missed memory: below it, the value measures something else. A reader that is asked for more than its
 * memory has room for keeps some documents, and answers with them.
 */
const MISSES_AT_LEAST = 0.8;
const MEGABYTE = 1_000_000;

export function barsOf(results: Results): Bar[] {
  const { hot, misses, singleFlight, coherence, scale } = results;
  return [
    ...hot.targets.flatMap(hotBars),
    ...halfLoadBars(hot.halfLoad),
    ...missBars(misses),
    {
      what: `${singleFlight.callers} misses of one key at once: answered`,
      found: singleFlight.answered,
      unit: '',
      limit: singleFlight.callers,
      bound: 'exactly',
    },
    { what: 'their queries', found: singleFlight.queries, unit: '', limit: 1, bound: 'exactly' },
    startBar('start to first answer / bare Fastify', results.starts),
    processesBar(results.processes),
    ...coherenceBars(coherence),
    ...(scale ? scaleBars(scale) : [SCALE_LEFT_OUT]),
  ];
}

/** Both values of a round were measured within seconds of each other, so their ratio is comparable. */
export function ratios(mine: readonly number[], theirs: readonly number[]): number[] {
  return mine.map((figure, round) => figure / (theirs[round] ?? Number.NaN));
}

function hotBars({ what, perSecond, cpu }: HotTarget): Bar[] {
  const mine = perSecond.fleetbook ?? [];
  const own: Bar = { what: `${what}: fleetbook`, found: median(mine), unit: '/s', note: spread(mine) };
  const others = PEERS.flatMap(({ server, name, limit, goal }): Bar[] => {
    const theirs = perSecond[server];
    const bar: Bar = {
      what: `${what} / ${name}`,
      unit: '×',
      bound: 'least',
      ...(limit === undefined ? {} : { limit }),
      ...(goal === undefined ? {} : { goal }),
    };
    if (theirs) return [{ ...bar, ...ratioOf(mine, theirs) }];
    // A server without a value at a 304 was not measured there.
    return server === 'nginx' && perSecond.redis ? [{ ...bar, note: NGINX_MISSING }] : [];
  });
  return [own, ...others, ...platformBar(what, perSecond), cpuBar(what, perSecond, cpu)];
}

/** Without a goal: the rate of Node itself, about the maximum of any server on it. */
function platformBar(what: string, { bare, nginx }: HotTarget['perSecond']): Bar[] {
  return bare && nginx
    ? [{ what: `${what}: bare node:http / nginx`, unit: '×', ...ratioOf(bare, nginx) }]
    : [];
}

/** The minimum of memory's answers relative to a bare server, by CPU time. The wall time has no goal. */
const CPU_AT_LEAST = 0.95;

/** CPU time instead of answers a second: of all values, it depends least on the rest of the machine. */
function cpuBar(
  what: string,
  perSecond: HotTarget['perSecond'],
  { fleetbook = [], bare = [] }: HotTarget['cpu'],
): Bar {
  // If the server's share is far below all of it, the load or the rest of the machine was the bottleneck.
  const used = (cpu: readonly number[], figures: readonly number[] = []) =>
    percent(median(cpu.map((micros, round) => (micros * (figures[round] ?? 0)) / 1e6)));
  const shares = `${used(fleetbook, perSecond.fleetbook)} and ${used(bare, perSecond.bare)} of the core`;
  const note = `${median(fleetbook).toFixed(1)} and ${median(bare).toFixed(1)} µs an answer; ${shares}`;
  const bar: Bar = {
    what: `${what}: CPU time of bare node:http / fleetbook`,
    unit: '×',
    limit: CPU_AT_LEAST,
    bound: 'least',
    note,
  };
  const found = median(ratios(bare, fleetbook));
  return Number.isNaN(found) ? { ...bar, note: 'needs /proc' } : { ...bar, found };
}

const NGINX_MISSING = 'nginx is not installed (Debian: apt-get install nginx-light)';

/** Milliseconds of p99 beyond which the bare server shows the machine alone. */
const MACHINE_ALONE_MS = 10;

export function halfLoadBars({ rate, fleetbook, bare }: Paced): Bar[] {
  const p99 = (runs: typeof bare) => runs.map((run) => run.p99);
  const ofBare = p99(bare);
  const isLate = median(ofBare) > MACHINE_ALONE_MS;
  return [
    { what: `p99 at ${rate}/s, half load: fleetbook`, found: median(p99(fleetbook)), unit: 'ms' },
    { what: 'the same: bare node:http', found: median(ofBare), unit: 'ms', note: spread(ofBare) },
    {
      what: 'p99 at half load / bare node:http',
      unit: '×',
      limit: 1.5,
      ...ratioOf(p99(fleetbook), ofBare),
      unsure: isLate
        ? `bare node:http itself exceeds ${MACHINE_ALONE_MS} ms`
        : unsteady('bare node:http', ofBare),
    },
  ];
}

const REDIS_MISSES: Readonly<Record<RedisMiss, string>> = {
  list: 'a list of 3 KB',
  machine: 'one machine',
  clusters: 'clusters',
  cluster: 'one cluster',
};

/** See docs/decisions: a server that does less is shown, and sets no bar. */
const CONTRACT_BAR = { limit: 1, goal: 1.2 };

export function missBars({ redis, fresh, postgres }: Misses): Bar[] {
  const fromPostgres = Object.entries(postgres ?? {}) as [string, Miss][];
  return [
    ...Object.entries(REDIS_MISSES).flatMap(([kind, what]) => {
      const miss = redis[kind as RedisMiss];
      const cpu = `misses, Redis, ${what}: CPU time of Fastify + Redis`;
      return [
        missBar(`${cpu} / fleetbook`, miss, {}),
        missBar(`${cpu} with the contract / fleetbook`, { ...miss, peer: miss.contract }, CONTRACT_BAR),
      ];
    }),
    ...freshBars(fresh),
    ...fromPostgres.map(([what, miss]) =>
      missBar(`misses, PostgreSQL, ${what}: CPU time of Fastify + Drizzle / fleetbook`, miss, { limit: 1.5 }),
    ),
  ];
}

/** CPU time of a miss, as if answers of memory cost nothing. The note has answers a second. */
function missBar(what: string, miss: Miss, limits: Pick<Bar, 'limit' | 'goal'>): Bar {
  const { fleetbook, peer, share } = miss;
  const bar: Bar = { what, unit: '×', bound: 'least', ...limits };
  if (share < MISSES_AT_LEAST) return { ...bar, note: `only ${percent(share)} were misses` };
  const ofMiss = fleetbook.cpu.map((micros) => micros / share);
  return { ...bar, ...cpuRatio({ ...fleetbook, cpu: ofMiss }, peer) };
}

function cpuRatio(fleetbook: Figures, peer: Figures): { found: number; note: string } {
  const { found, note } = ratioOf(peer.cpu, fleetbook.cpu);
  const micros = `${median(fleetbook.cpu).toFixed(1)} and ${median(peer.cpu).toFixed(1)} µs an answer`;
  const rates = `${median(fleetbook.perSecond).toFixed(0)} and ${median(peer.perSecond).toFixed(0)} a second`;
  return { found, note: `${note}; ${micros}, ${rates}` };
}

/** Each second of a reader that just started, without a goal. The whole has one. */
function freshBars(runs: Misses['fresh']): Bar[] {
  const all = (of: 'fleetbook' | 'peer') => runs.map((run) => run[of]);
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  const answered = (of: 'fleetbook' | 'peer') => all(of).map(({ perSecond }) => sum(perSecond));
  const seconds = runs[0]?.fleetbook.cpu.length ?? 0;
  const second = (index: number): Bar => {
    const only = (of: 'fleetbook' | 'peer'): Figures => ({
      perSecond: all(of).map(({ perSecond }) => perSecond[index] ?? Number.NaN),
      cpu: all(of).map(({ cpu }) => cpu[index] ?? Number.NaN),
    });
    const what = `second ${index + 1} of a fresh reader, lists: CPU time of Fastify + Redis with the contract / fleetbook`;
    return { what, unit: '×', ...cpuRatio(only('fleetbook'), only('peer')) };
  };
  return [
    ...Array.from({ length: seconds }, (_, index) => second(index)),
    {
      what: 'answers in these seconds / Fastify + Redis with the contract',
      unit: '×',
      limit: 0.9,
      bound: 'least',
      ...ratioOf(answered('fleetbook'), answered('peer')),
    },
  ];
}

function startBar(what: string, { fleetbook, fastify }: Starts): Bar {
  const found = median(fleetbook) / median(fastify);
  const note = `${median(fleetbook).toFixed(0)} ms and ${median(fastify).toFixed(0)} ms`;
  return { what, found, unit: '×', limit: 1.6, note };
}

function processesBar(processes: Results['processes']): Bar {
  const bar: Bar = { what: '--processes N / N × one', unit: '×', limit: 0.9, bound: 'least' };
  if ('why' in processes) return { ...bar, note: processes.why };
  const { one, all, processes: count } = processes;
  return {
    ...bar,
    what: `--processes ${count} / ${count} × one`,
    ...ratioOf(
      all,
      one.map((figure) => figure * count),
    ),
  };
}

function coherenceBars({ readers, delays, older }: Coherence): Bar[] {
  return [
    {
      what: `commit to visible on ${readers} readers, p99`,
      found: percentile(delays, 0.99),
      unit: 'ms',
      limit: 250,
      note: `median ${median(delays).toFixed(0)}, worst ${percentile(delays, 1).toFixed(0)} ms, ${delays.length} changes`,
    },
    { what: 'older answers after newer ones', found: older, unit: '', limit: 0, bound: 'exactly' },
  ];
}

const SCALE_LEFT_OUT: Bar = {
  what: '1,000,000 machines and 500,000 clusters',
  unit: '',
  note: 'takes minutes: add --scale',
};

function scaleBars({
  before,
  most,
  memoryLimit,
  starts,
  machines,
  clusters,
  redisBytes,
  publishing,
  requests,
  unavailable,
}: Scale): Bar[] {
  return [
    {
      what: `${machines} machines, ${clusters} clusters: publishing`,
      found: publishing,
      unit: 's',
      note: `${(redisBytes / MEGABYTE).toFixed(0)} MB in Redis`,
    },
    {
      what: 'reader memory without the program itself',
      found: (most - before) / MEGABYTE,
      unit: 'MB',
      limit: memoryLimit / MEGABYTE,
      note: `resident: ${(before / MEGABYTE).toFixed(0)} MB at first, ${(most / MEGABYTE).toFixed(0)} MB at most`,
    },
    {
      what: 'answers of 503 meanwhile',
      found: unavailable,
      unit: '',
      limit: 0,
      bound: 'exactly',
      note: `of ${requests}`,
    },
    startBar('start to first answer, all that published', starts),
  ];
}

function ratioOf(mine: readonly number[], theirs: readonly number[]): { found: number; note: string } {
  const all = ratios(mine, theirs);
  return { found: median(all), note: spread(all) };
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

const percent = (share: number): string => `${(share * 100).toFixed(0)} %`;
