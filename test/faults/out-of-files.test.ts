import { connect, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { troubles, underLoad } from './support/row.ts';

const FILES = 1024;
/** To each reader. */
const CONNECTIONS = 1200;
/** Each may have a sixteenth of the places for connections without a token, and more while places are free. */
const ADDRESSES = 20;

it('a reader that may open few files refuses connections', async () => {
  const held = new Set<Socket>();
  let reports: string[] = [];
  const outcome = await underLoad({
    fault: `Twenty addresses hold ${CONNECTIONS} silent connections to each reader, which may open ${FILES} files, for {seconds}`,
    stack: { through: ['sh', '-c', `ulimit -n ${FILES} && exec "$0" "$@"`] },
    strike({ readers }) {
      for (const { url } of readers) {
        const { hostname, port } = new URL(url);
        for (let i = 0; i < CONNECTIONS; i++) {
          const localAddress = `127.0.0.${2 + (i % ADDRESSES)}`;
          const socket = connect({ host: hostname, port: Number(port), localAddress });
          held.add(socket);
          socket.on('error', () => {}).resume();
        }
      }
    },
    heal({ readers }) {
      for (const socket of held) socket.destroy();
      reports = readers.map(({ program }) => program.output());
    },
  });
  for (const report of reports) expect(report).toContain(`may open only ${FILES} files here`);
  expect(troubles(outcome.measured)).toEqual({});
});
