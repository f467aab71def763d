import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it } from 'vitest';
import { ServerConnector } from '../../src/redis/connectors.ts';

/** A server that accepts connections and never answers. */
async function listening() {
  const server = createServer((socket) => socket.on('error', () => {}));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return { host: '127.0.0.1', port, [Symbol.asyncDispose]: async () => void server.close() };
}

it('a connection that several rejected commands close is closed once', async () => {
  await using server = await listening();
  const connector = new ServerConnector(server);
  const socket = await connector.connect();
  const before = socket.listenerCount('close');
  for (let i = 0; i < 20; i++) connector.disconnect();
  expect(socket.listenerCount('close')).toBe(before + 1);
  await once(socket, 'close');
});

it('a new connection can be closed again', async () => {
  await using server = await listening();
  const connector = new ServerConnector(server);
  for (let i = 0; i < 2; i++) {
    const socket = await connector.connect();
    expect(socket.writableEnded).toBe(false);
    connector.disconnect();
    expect(socket.writableEnded).toBe(true);
    await once(socket, 'close');
  }
});

it('an error of an already failed socket ends no process', async () => {
  await using server = await listening();
  const connector = new ServerConnector(server);
  const socket = await connector.connect();
  for (const message of ['the first', 'the second']) socket.emit('error', new Error(message));
  expect(connector.firstError).toEqual(new Error('the first'));
  const closed = once(socket, 'close');
  connector.disconnect();
  await closed;
});
