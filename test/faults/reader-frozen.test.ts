/** A reader that does not run for seconds, such as one in a paused container, and a token that is revoked during this time. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { createToken, revokeToken } from '../../src/db/tokens.ts';
import { until } from '../support/until.ts';
import { underLoad } from './support/row.ts';
import type { Stack } from './support/stack.ts';

const CONNECTIONS = 2;
/** On each connection: as many as may wait for their answers. */
const REQUESTS = 63;

/** Counts the statuses of the answers on a connection. */
function countStatuses(socket: Socket, statuses: Map<string, number>): void {
  let rest = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    rest += chunk;
    for (const [, status = ''] of rest.matchAll(/HTTP\/1\.1 (\d{3}) [^\r\n]*\r\n/g))
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    // A status line may be cut. It follows a body without a line break.
    rest = rest.slice(rest.lastIndexOf('\n') + 1);
  });
}

it('a reader refuses a token that was revoked while it was frozen, from the first request', async () => {
  const { promise: reading, resolve: opened } = Promise.withResolvers<Map<string, number>>();
  const pause = async ({ readers: [reader], organizations: [organization], store }: Stack) => {
    if (!reader || !organization) return expect.unreachable('the stack has both');
    const { token, id } = await createToken(store.db, {
      organizationId: organization.id,
      scopes: ['machines:read', 'clusters:read'],
    });
    const headers = { authorization: `Bearer ${token}` };
    const path = '/v1/clusters/main';
    await until(async () => (await fetch(reader.url + path, { headers })).ok);
    const statuses = new Map<string, number>();
    const sockets: Socket[] = [];
    const request = `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n\r\n`;
    for (let opening = 1; opening <= CONNECTIONS; opening++) {
      const socket = connect(Number(new URL(reader.url).port), '127.0.0.1');
      await once(socket, 'connect');
      countStatuses(socket, statuses);
      sockets.push(socket);
      socket.write(request);
      await until(() => statuses.get('200') === opening);
    }
    reader.program.child.kill('SIGSTOP');
    await revokeToken(store.db, id);
    for (const socket of sockets) socket.write(request.repeat(REQUESTS));
    opened(statuses);
    return undefined;
  };
  const outcome = await underLoad({
    fault: 'A reader is frozen for {seconds}',
    seconds: 4,
    strike: pause,
    heal({ readers: [reader] }) {
      reader?.program.child.kill('SIGCONT');
    },
  });
  const statuses = await reading;
  const answered = () => [...statuses.values()].reduce((sum, each) => sum + each, 0);
  await until(() => answered() === CONNECTIONS * (REQUESTS + 1));
  expect(Object.fromEntries(statuses)).toEqual({ 200: CONNECTIONS, 401: CONNECTIONS * REQUESTS });
  expect(outcome.wrong).toBe(0);
});
