/** One process with the default MAX_CONNECTIONS, all of them open. */
import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { startProgram } from '../support/program.ts';

const PROGRAM = new URL('programs/many-connections.ts', import.meta.url).pathname;
const CONNECTIONS = 10_000;
/** File descriptors of a process in addition to its connections. */
const OTHERS = 200;

/** The hard limit of file descriptors of a process. */
function descriptors(): number {
  const limit = execFileSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }).trim();
  return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit);
}

const needed = CONNECTIONS + OTHERS;
const lacking = descriptors() < needed ? ` (skipped: ulimit -Hn is below ${needed})` : '';

it.skipIf(lacking !== '')(
  `10,000 connections stay open, and each is answered twice${lacking}`,
  async () => {
    const through = ['sh', '-c', `ulimit -n ${needed} && exec "$0" "$@"`];
    await using server = await startProgram(PROGRAM, ['serve'], { through });
    const { port, token } = await server.answer('port');
    await using clients = await startProgram(
      PROGRAM,
      ['connect', String(port), String(CONNECTIONS), String(token)],
      {
        through,
      },
    );
    expect(await clients.answer('open')).toEqual({ open: CONNECTIONS });
    expect(await clients.answer('answered')).toEqual({ answered: CONNECTIONS });
    const health = await fetch(`http://127.0.0.1:${port}/healthz`);
    expect(health.status).toBe(200);
  },
  240_000,
);
