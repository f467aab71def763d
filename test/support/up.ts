import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../src/processes/port.ts';
import { CLI } from './program.ts';
import { until } from './until.ts';

/** A `fleetbook up` as a person starts it, in a temporary folder. */
export interface Up {
  readonly url: string;
  readonly opsUrl: string;
  readonly operatorToken: string;
  readonly token: string;
  /** Port of its Redis. */
  readonly redisPort: number;
  /** The whole output so far. */
  output(): string;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  json(path: string): Promise<unknown>;
  /** Sends Ctrl-C and returns the exit code. */
  interrupt(): Promise<number | null>;
}

/** A data folder for several starts of `up`. */
export async function temporaryHome(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'fleetbook-up-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Starts it and waits until it reports that it is ready. @param args `demo` starts the demo instead */
export async function startUp(
  home: string,
  env: Record<string, string> = {},
  args: readonly string[] = ['up'],
  cli = CLI,
): Promise<Up & AsyncDisposable> {
  const [port, opsPort] = [await freePort(), await freePort()];
  const child = spawn(process.execPath, [cli, ...args], {
    cwd: home,
    env: { PATH: process.env.PATH, PORT: String(port), OPS_PORT: String(opsPort), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const exited = exitOf(child);
  let code: number | null | undefined;
  void exited.then((found) => {
    code = found;
  });
  const ready = await until(
    () => {
      if (code !== undefined) return 'ended';
      return /fleetbook ready (http:\S+) token (fb_\S+)\ncurl /.exec(output);
    },
    { timeoutMs: 90_000, what: 'the line `fleetbook ready`' },
  );
  if (ready === 'ended') throw new Error(`fleetbook up ended with ${code}:\n${output}`);
  const [, url = '', token = ''] = ready;
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(url + path, { headers: { authorization: `Bearer ${token}`, ...headers } });
  const [, opsUrl = '', operatorToken = ''] = /operators' pages +(\S+) +token (fbo_\S+)/.exec(output) ?? [];
  return {
    url,
    token,
    opsUrl,
    operatorToken,
    redisPort: Number(/Redis \(.*\) on port (\d+)/.exec(output)?.[1]),
    output: () => output,
    get,
    json: async (path) => (await get(path)).json(),
    async interrupt() {
      child.kill('SIGINT');
      return exited;
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

function exitOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => child.once('exit', resolve));
}
