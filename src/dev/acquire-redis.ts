import { spawn } from 'node:child_process';
import { chmodSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { onPath } from '../processes/on-path.ts';
import { findRedisServer, type RedisBinary } from './redis.ts';

const INSTALL =
  'Install one (Debian, Ubuntu: `sudo apt install redis-server`; macOS: `brew install valkey`; Fedora: `sudo dnf install valkey`)';
const OR_URL =
  ', or set REDIS_URL to a server that runs, e.g. redis://127.0.0.1:6379. The README says how to have one without root';

const QUESTION =
  'Fleetbook needs a Redis server and found none. Install the system package redis-server with apt-get? [Y/n] ';

const POLICY = '/usr/sbin/policy-rc.d';

export interface AcquireOptions {
  /** True asks before anything is installed. Whether standard input and output are a terminal, unless given. */
  readonly interactive?: boolean;
  /** Tells the user one line; standard error unless given. */
  readonly say?: (line: string) => void;
  /** Where programs are looked for; PATH and the usual places unless given. */
  readonly path?: string;
  /** False where a server that runs already, named by REDIS_URL, would not do. */
  readonly isUrlUseful?: boolean;
}

/**
 * The Redis or Valkey of this machine. Where there is none, and we are root on a system with apt-get, Debian's package
 * `redis-server` is installed after saying so, and its system service is left stopped and disabled.
 * @throws Error that says what to do when there is none and it cannot or must not be installed.
 */
export async function acquireRedisServer(options: AcquireOptions = {}): Promise<RedisBinary> {
  const remedy = (options.isUrlUseful ?? true) ? `${INSTALL}${OR_URL}` : INSTALL;
  const find = (program: string) => onPath(program, options.path);
  const found = findRedisServer(options.path);
  if (found) return found;
  const apt = find('apt-get');
  if (apt === undefined || process.getuid?.() !== 0) {
    throw new Error(`no redis-server or valkey-server (6.2 or newer) was found. ${remedy}`);
  }
  const say = options.say ?? ((line: string) => void process.stderr.write(`${line}\n`));
  const interactive = options.interactive ?? (process.stdin.isTTY === true && process.stdout.isTTY === true);
  if (interactive && !(await agreed())) throw new Error(`redis-server was not installed. ${remedy}`);
  say(
    'No redis-server was found: installing the system package redis-server with apt-get; its service stays off.',
  );
  await withoutStartingServices(() => install(apt, remedy));
  await keepServiceOff(find);
  const installed = findRedisServer(options.path);
  if (!installed) throw new Error(`this system's redis-server is older than 6.2. ${remedy}`);
  say(`Installed ${installed.name} ${installed.version}.`);
  return installed;
}

async function agreed(): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    // Ctrl-D closes the terminal without an answer.
    const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('no')));
    const answer = await Promise.race([terminal.question(QUESTION), closed]);
    return /^(y|yes|)$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}

/** Debian's way to keep the services of newly installed packages from being started; somebody's own policy stays. */
async function withoutStartingServices(act: () => Promise<void>): Promise<void> {
  if (existsSync(POLICY)) return act();
  writeFileSync(POLICY, '#!/bin/sh\nexit 101\n');
  chmodSync(POLICY, 0o755);
  const remove = () => rmSync(POLICY, { force: true });
  process.once('exit', remove);
  try {
    await act();
  } finally {
    remove();
    process.off('exit', remove);
  }
}

async function install(apt: string, remedy: string): Promise<void> {
  const quiet = ['-o', 'DPkg::Lock::Timeout=120', '-qq'];
  const wanted = [...quiet, 'install', '--yes', '--no-install-recommends', 'redis-server'];
  if ((await run(apt, wanted)).code === 0) return;
  // The package lists are missing or out of date.
  const update = await run(apt, [...quiet, 'update']);
  const again = await run(apt, wanted);
  if (again.code !== 0) {
    throw new Error(
      `apt-get could not install redis-server. ${remedy}\n${update.output}${again.output}`.trim(),
    );
  }
}

async function keepServiceOff(find: (program: string) => string | undefined): Promise<void> {
  const systemctl = existsSync('/run/systemd/system') ? find('systemctl') : undefined;
  if (systemctl !== undefined) {
    await run(systemctl, ['disable', '--now', 'redis-server.service']);
    return;
  }
  const [updateRc, service] = [find('update-rc.d'), find('service')];
  if (updateRc !== undefined) await run(updateRc, ['redis-server', 'disable']);
  if (service !== undefined) await run(service, ['redis-server', 'stop']);
}

function run(program: string, args: readonly string[]): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', NEEDRESTART_MODE: 'l', LC_ALL: 'C.UTF-8' },
    });
    let output = '';
    const keep = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-4_000);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.once('error', (error) => resolve({ code: -1, output: `${error.message}\n` }));
    child.once('close', (code) => resolve({ code, output }));
  });
}
