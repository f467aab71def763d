/** wrk(1), on the load's core. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { findProgram } from '../../src/processes/find-program.ts';
import { pinned } from './program.ts';

export interface Load {
  readonly port: number;
  /** The path of all requests, unless a script chooses them. */
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly seconds: number;
  /** Default: 64. */
  readonly connections?: number;
  /** With more than one, threads share cores. Default: 1. */
  readonly threads?: number;
  readonly script?: string;
}

export function findWrk(): string | undefined {
  return findProgram('wrk');
}

export interface Answered {
  readonly perSecond: number;
  /** In total. */
  readonly answers: number;
}

/**
 * @throws Error for a missing answer, a status of 400 or more, or a failed connection: the result would be invalid
 */
export async function runWrk(load: Load): Promise<Answered> {
  const { port, path = '/', headers = {}, seconds, connections = 64, threads = 1, script } = load;
  const [command, args] = pinned(threads === 1 ? 'load' : 'any', 'wrk', [
    `-t${threads}`,
    `-c${connections}`,
    `-d${seconds}s`,
    // The naive peer takes seconds for a large list while its code is still being compiled.
    '--timeout',
    '10s',
    ...Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
    ...(script === undefined ? [] : ['-s', script]),
    `http://127.0.0.1:${port}${path}`,
  ]);
  const { stdout } = await promisify(execFile)(command, args);
  return readWrk(stdout);
}

/** Reads the output of wrk. @throws Error as `runWrk` does */
export function readWrk(output: string): Answered {
  const [, perSecond] = /^Requests\/sec:\s+([\d.]+)/m.exec(output) ?? [];
  const trouble = /^\s*(?:Non-2xx or 3xx responses|Socket errors):.*$/m.exec(output)?.[0].trim();
  if (trouble !== undefined && /[1-9]/.test(trouble.replace('2xx or 3xx', ''))) {
    throw new Error(`the load was not answered as it should be: ${trouble}`);
  }
  const [, answers] = /^\s+(\d+) requests in /m.exec(output) ?? [];
  if (perSecond === undefined || answers === undefined) throw new Error(`wrk printed no result:\n${output}`);
  return { perSecond: Number(perSecond), answers: Number(answers) };
}

/** A wrk script that sends the requests in turn, repeatedly. */
export function cycleScript(
  requests: readonly { readonly path: string; readonly headers: Readonly<Record<string, string>> }[],
): string {
  const lines = requests.map(({ path, headers }) => {
    const fields = Object.entries(headers).map(([name, value]) => `[${lua(name)}]=${lua(value)}`);
    return `{${lua(path)},{${fields.join(',')}}},`;
  });
  return `local asked = {\n${lines.join('\n')}\n}
local ready, next = {}, 0
function init()
  for i, one in ipairs(asked) do ready[i] = wrk.format('GET', one[1], one[2]) end
end
function request()
  next = next % #ready + 1
  return ready[next]
end
`;
}

const lua = (text: string): string => JSON.stringify(text);
