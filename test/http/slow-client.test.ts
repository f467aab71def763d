/** Clients that send requests and read no answer. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { it } from 'vitest';
import { hashOf } from '../../src/snapshot/document/body.ts';
import { until } from '../support/until.ts';
import { listen, testApi } from './harness.ts';

const bodyOf = (length: number) => {
  const identity = Buffer.alloc(length, 'x');
  return { identity, gzip: undefined, br: undefined, hash: hashOf(identity) };
};
/** More than the system's buffers contain. */
const large = bodyOf(20_000_000);
const small = bodyOf(2);

it.each([
  ['at once', ['/v1/clusters']],
  ['after a small answer on the same connection', ['/v1/clusters/small', '/v1/clusters']],
])('a client that reads nothing of a large answer, given %s, is disconnected', async (_, targets) => {
  await using api = await testApi({
    clusters: {
      clusters: async () => ({ body: large, tier: 'memory', asOf: undefined, currency: undefined }),
      cluster: async () => ({ body: small, tier: 'memory', asOf: undefined, currency: undefined }),
    },
    limits: { idleTimeoutMs: 300, drainMs: 100 },
  });
  const port = await listen(api.app);
  const accepted = once(api.app.server, 'connection');
  const client = connect({ port, host: '127.0.0.1' }).on('error', () => {});
  client.pause();
  const request = (target: string) =>
    `GET ${target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${api.token}\r\n\r\n`;
  client.write(targets.map(request).join(''));
  const [connection] = await accepted;
  try {
    await until(() => connection.destroyed, { timeoutMs: 5000, what: 'the connection is cut' });
  } finally {
    client.destroy();
  }
});
