/**
 * Programs of tests with many connections: `serve <most connections>` answers, and reports that it is alive; `connect <port> <count>
 * <token>` holds connections.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { listen, testApi } from '../harness.ts';

const [what, ...given] = process.argv.slice(2);
const print = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

if (what === 'serve') {
  const api = await testApi({ limits: { maxConnections: Number(given[0]), maxEventLoopDelayMs: 1000 } });
  print({ port: await listen(api.app), token: api.token });
  setInterval(() => print({ alive: process.uptime() }), 1000);
} else {
  const [port = 0, count = 0] = given.map(Number);
  const request = `GET /v1/clusters HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${given[2]}\r\n\r\n`;
  const sockets: Socket[] = [];
  /** Connections that are opened at once: the kernel queues no more than a few hundred. */
  const AT_ONCE = 100;
  while (sockets.length < count) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - sockets.length) }, () =>
      connect({ port, host: '127.0.0.1' }),
    );
    await Promise.all(some.map((socket) => once(socket, 'connect')));
    sockets.push(...some);
    await answers(some);
  }
  print({ open: sockets.length });
  // All of them again, on the existing connections.
  let answered = 0;
  for (let i = 0; i < sockets.length; i += AT_ONCE) answered += await answers(sockets.slice(i, i + AT_ONCE));
  print({ answered });
  process.stdin.resume();

  async function answers(some: readonly Socket[]): Promise<number> {
    const statuses = await Promise.all(
      some.map(async (socket) => {
        const answer = once(socket, 'data');
        socket.write(request);
        return String((await answer)[0]).startsWith('HTTP/1.1 200');
      }),
    );
    return statuses.filter(Boolean).length;
  }
}
