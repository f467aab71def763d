/** A proxy to Redis that can lose published messages and passes all else. */
import { connect, createServer, type Socket } from 'node:net';

export interface LossyRedis extends AsyncDisposable {
  /** The server's URL, through the proxy. */
  readonly url: string;
  /** While true, subscribers receive no published message; their connections stay open. */
  losesMessages: boolean;
  readonly lost: number;
}

/** A published message in RESP2, and no other answer: subscribers also get answers to their pings. */
const MESSAGE = '$7\r\nmessage\r\n';

export async function lossyRedis(redisUrl: string): Promise<LossyRedis> {
  const target = new URL(redisUrl);
  const sockets = new Set<Socket>();
  let losesMessages = false;
  let lost = 0;
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
    client.pipe(upstream);
    upstream.on('data', (chunk: Buffer) => {
      if (losesMessages && chunk.includes(MESSAGE)) lost += 1;
      else client.write(chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const url = new URL(redisUrl);
  url.host = `127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`;
  return {
    url: url.href,
    get losesMessages() {
      return losesMessages;
    },
    set losesMessages(value) {
      losesMessages = value;
    },
    get lost() {
      return lost;
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
