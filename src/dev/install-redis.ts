import { createInterface } from 'node:readline/promises';
import { findProgram } from '../processes/find-program.ts';
import { findRedisServer, type RedisBinary } from './redis.ts';
import { installer } from './system-package.ts';

const INSTALL =
  'Install one (Debian, Ubuntu: `sudo apt install redis-server`; macOS: `brew install valkey`; Fedora: `sudo dnf install valkey`)';
const OR_URL =
  ', or set REDIS_URL to a running server, e.g. redis://127.0.0.1:6379. See docs/install.md for a Redis without root';

const QUESTION =
  'Fleetbook needs a Redis server and found none. Install the system package redis-server with apt-get? [Y/n] ';

export interface AcquireOptions {
  /** True asks before an installation. By default true if standard input and output are a terminal. */
  readonly interactive?: boolean;
  readonly notify?: (line: string) => void;
  /** Folders to search for programs; by default PATH and the common folders. */
  readonly path?: string;
  /** False if the remedy must not mention REDIS_URL. */
  readonly isUrlUseful?: boolean;
}

/** Finds Redis or Valkey. If there is none, root installs Debian's package. @throws Error with the remedy */
export async function acquireRedisServer(options: AcquireOptions = {}): Promise<RedisBinary> {
  const remedy = (options.isUrlUseful ?? true) ? `${INSTALL}${OR_URL}` : INSTALL;
  const found = findRedisServer(options.path);
  if (found) return found;
  const install = installer((program) => findProgram(program, options.path));
  if (!install) {
    throw new Error(`no redis-server or valkey-server (7.0 or newer) was found. ${remedy}`);
  }
  const notify = options.notify ?? ((line: string) => void process.stderr.write(`${line}\n`));
  const interactive = options.interactive ?? (process.stdin.isTTY === true && process.stdout.isTTY === true);
  if (interactive && !(await agreed())) throw new Error(`redis-server was not installed. ${remedy}`);
  notify(
    'No redis-server was found: installing the system package redis-server with apt-get; its service stays off.',
  );
  const failure = await install('redis-server');
  if (failure !== undefined)
    throw new Error(`apt-get could not install redis-server. ${remedy}\n${failure}`.trim());
  const installed = findRedisServer(options.path);
  if (!installed) throw new Error(`this system's redis-server is older than 7.0. ${remedy}`);
  notify(`Installed ${installed.name} ${installed.version}.`);
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
