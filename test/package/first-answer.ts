/** One new user: installs the package with an empty cache, starts `up`, and waits for the first answer of the API. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { promisify } from 'node:util';
import { freePort } from '../../src/processes/port.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);
const ORDINARY_USER = '65534';

export interface Start {
  readonly tarball: string;
  readonly path: string;
  readonly user: 'root' | 'ordinary';
  readonly way: 'npx' | 'global';
}

interface Outcome {
  /** Undefined with npx, which installs and starts. */
  readonly installed: string;
  readonly answered: string;
  readonly megabytes: string;
  readonly postgres: string;
  readonly exit: string;
}

/** @throws Error with the output if there is no answer, or if `up` does not end well */
export async function firstAnswer(home: string, start: Start): Promise<Outcome> {
  const work = join(home, 'work');
  await mkdir(work, { recursive: true });
  const isRoot = start.user === 'root';
  if (!isRoot) await run('chown', ['-R', `${ORDINARY_USER}:${ORDINARY_USER}`, home]);
  const as = isRoot
    ? []
    : [
        'setpriv',
        `--reuid=${ORDINARY_USER}`,
        `--regid=${ORDINARY_USER}`,
        '--clear-groups',
        '--inh-caps=-all',
        '--',
      ];
  const [port, opsPort] = [await freePort(), await freePort()];
  const env = {
    PATH: start.path,
    HOME: home,
    npm_config_update_notifier: 'false',
    PORT: String(port),
    OPS_PORT: String(opsPort),
    ...(process.env.NODE_EXTRA_CA_CERTS ? { NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS } : {}),
  };
  const prefix = join(home, 'global');
  const command =
    start.way === 'npx'
      ? ['npx', '--yes', `--package=${start.tarball}`, 'fleetbook', 'up']
      : [join(prefix, 'bin/fleetbook'), 'up'];
  const began = performance.now();
  const seconds = () => ((performance.now() - began) / 1000).toFixed(1);
  let installed = '-';
  if (start.way === 'global') {
    const [program = '', ...args] = [
      ...as,
      'npm',
      'install',
      '--global',
      `--prefix=${prefix}`,
      start.tarball,
    ];
    await run(program, args, { cwd: work, env });
    installed = seconds();
  }
  const [program = '', ...args] = [...as, ...command];
  const child = spawn(program, args, { cwd: work, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const exited = once(child, 'exit');
  try {
    const ready = await until(
      () => {
        if (child.exitCode !== null) return 'ended';
        return /fleetbook ready (http:\S+) token (fb_\S+)/.exec(output) ?? false;
      },
      { timeoutMs: 300_000, everyMs: 20, what: 'the line `fleetbook ready`' },
    );
    if (ready === 'ended') throw new Error('it ended before it was ready');
    const [, url, token] = ready;
    const answer = await fetch(`${url}/v1/providers`, { headers: { authorization: `Bearer ${token}` } });
    const answered = seconds();
    if (answer.status !== 200 || !(await answer.text()).includes('Hetzner')) throw new Error('wrong answer');
    // As Ctrl-C of a terminal, which reaches each process of the group.
    process.kill(-(child.pid ?? 0), 'SIGINT');
    const [code, signal] = await exited;
    const folder = start.way === 'npx' ? join(home, '.npm/_npx') : prefix;
    const own = join(work, '.fleetbook/sample/postgres-programs');
    return {
      installed,
      answered,
      megabytes: await size(folder),
      postgres: await size(own),
      exit: String(code ?? signal),
    };
  } catch (error) {
    if (child.exitCode === null) process.kill(-(child.pid ?? 0), 'SIGKILL');
    throw new Error(`${(error as Error).message}\n${output.slice(-3000)}`, { cause: error });
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

async function size(folder: string): Promise<string> {
  const { stdout } = await run('du', ['-sk', folder]);
  return ((Number.parseInt(stdout, 10) * 1024) / 1e6).toFixed(0);
}
