/** `npm run bench -- <benchmark> [part] [options]`: runs one benchmark. Without one it lists them, and `--help` explains one. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { inPackage } from '../src/config/package.ts';

interface Benchmark {
  readonly what: string;
  /** The npm script that builds what is measured. */
  readonly builds?: 'build' | 'build:console';
}

/** By file, without `.ts`: six benchmarks, and their parts that run alone. */
const BENCHMARKS: Readonly<Record<string, Benchmark>> = {
  sync: { what: 'syncs of a million offers, or of 500,000 clusters, compared with a bare COPY' },
  'sync/freshness': { what: 'the time from a change in a control plane to a readable answer' },
  'sync/region-file': { what: 'the memory for one region file of AWS with 500 MB' },
  read: {
    what: 'hot answers, misses, start and memory of a reader, next to simpler servers',
    builds: 'build',
  },
  'read/turns': {
    what: 'the longest turns of a reader’s event loop, by CPU time and function',
    builds: 'build',
  },
  'read/neighbours': {
    what: 'hot answers while another organization downloads, searches and follows',
    builds: 'build',
  },
  'read/memory': { what: 'bytes of an entry of a reader’s memory' },
  search: { what: 'searches of a million machines, next to PostgreSQL and DuckDB' },
  costs: { what: 'costs of an organization of 10,000 clusters' },
  streams: { what: '10,000 idle streams of /v1/changes', builds: 'build' },
  console: { what: 'routes and first view of the console with a million machines', builds: 'build:console' },
};

const [name = '', ...rest] = process.argv.slice(2);
const [part = ''] = rest;
const path = `${name}/${part}` in BENCHMARKS ? `${name}/${part}` : name;
const benchmark = BENCHMARKS[path];
if (benchmark === undefined) {
  for (const [each, { what }] of Object.entries(BENCHMARKS))
    process.stdout.write(`npm run bench -- ${each.replace('/', ' ').padEnd(17)} ${what}\n`);
  process.exit(name === '' || name === '--help' ? 0 : 2);
}
const options = path === name ? rest : rest.slice(1);
const isBuilt = benchmark.builds === undefined || options.includes('--help') || build(benchmark.builds) === 0;
process.exitCode = isBuilt ? run() : 1;

function build(script: string): number | null {
  return spawnSync('npm', ['run', '--silent', script], { cwd: inPackage(), stdio: ['ignore', 2, 'inherit'] })
    .status;
}

function run(): number {
  const script = join(import.meta.dirname, `${path}.ts`);
  const args = [...process.execArgv, script, ...options];
  return spawnSync(process.execPath, args, { cwd: inPackage(), stdio: 'inherit' }).status ?? 1;
}
