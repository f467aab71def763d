/** One process with thousands of open connections, at night with all of the default MAX_CONNECTIONS; and one that runs out of files. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { needs } from '../support/needs.ts';
import { startProgram } from '../support/program.ts';
import { runs } from '../support/random.ts';
import { until } from '../support/until.ts';

const PROGRAM = new URL('programs/many-connections.ts', import.meta.url).pathname;
const CONNECTIONS = runs(10_000);
/** File descriptors of a process in addition to its connections. */
const OTHERS = 200;

/** The hard limit of file descriptors of a process. */
function descriptors(): number {
  const limit = execFileSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }).trim();
  return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit);
}

const needed = CONNECTIONS + OTHERS;

it(`${CONNECTIONS} connections stay open, and each is answered twice`, {
  ...needs(descriptors() >= needed, `a hard limit of ${needed} open files (ulimit -Hn)`),
  timeout: 240_000,
}, async () => {
  const through = ['sh', '-c', `ulimit -n ${needed} && exec "$0" "$@"`];
  await using server = await startProgram(PROGRAM, ['serve', '21000'], { through });
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
});

it('a process without a file left refuses connections, and answers on those that it has', async () => {
  const through = ['sh', '-c', 'ulimit -n 64 && exec "$0" "$@"'];
  await using server = await startProgram(PROGRAM, ['serve', '0'], { through });
  const { port, token } = await server.answer('port');
  const request = `GET /v1/clusters HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  const client = connect({ port: Number(port), host: '127.0.0.1' });
  const answer = async () => {
    const next = once(client, 'data');
    client.write(request);
    return String((await next)[0]);
  };
  expect(await answer()).toMatch(/^HTTP\/1\.1 200 /);
  const silent = Array.from({ length: 100 }, () =>
    connect({ port: Number(port), host: '127.0.0.1' })
      .on('error', () => {})
      .resume(),
  );
  let closed = 0;
  for (const socket of silent) socket.on('close', () => (closed += 1));
  await until(() => closed > 30);
  // Its timers run several times.
  for (let i = 0; i < 4; i++) await server.answer('alive');
  expect(await answer()).toMatch(/^HTTP\/1\.1 200 /);
  for (const socket of [client, ...silent]) socket.destroy();
  const health = await until(() => fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined));
  expect(health.status).toBe(200);
});
