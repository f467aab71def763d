import { createServer, type Socket } from 'node:net';

/**
 * An upstream that answers each request with exactly the given bytes, valid or not, and then ends the connection:
 * `await using upstream = await rawUpstream()`.
 */
export interface RawUpstream extends AsyncDisposable {
  /** Without a trailing slash. */
  readonly url: string;
  answer: Uint8Array | string;
  /** Whether the connection stays open after the answer. Default: false. */
  keepsOpen: boolean;
  /** Whether to reset the connection of the next request instead of an answer. */
  resetsNext: boolean;
  readonly connections: number;
  readonly heads: readonly string[];
}

export async function rawUpstream(): Promise<RawUpstream> {
  const heads: string[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    let head = '';
    connections += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    // A client may disconnect before the whole answer is sent.
    socket.on('error', () => {});
    socket.on('data', (piece: Buffer) => {
      head += piece.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      heads.push(head);
      head = '';
      if (upstream.resetsNext) {
        upstream.resetsNext = false;
        socket.resetAndDestroy();
        return;
      }
      socket.write(upstream.answer);
      if (!upstream.keepsOpen) socket.end();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  const upstream: RawUpstream = {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    answer: '',
    keepsOpen: false,
    resetsNext: false,
    get connections() {
      return connections;
    },
    heads,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
  return upstream;
}
