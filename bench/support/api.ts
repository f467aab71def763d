/** The API in this process, with a feature that a benchmark composes, and a client of it. */
import { Agent, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ApiFeature, buildApp } from '../../src/http/app.ts';
import { memoryCatalogue, memoryClusters, memoryTokens } from '../../test/http/readers.ts';

export interface ApiClient extends AsyncDisposable {
  readonly server: Server;
  /** Resolves once the answer is whole, on one connection. @throws Error for another status than 200 */
  get(path: string): Promise<void>;
}

export async function openApi(feature: ApiFeature): Promise<ApiClient> {
  const tokens = memoryTokens();
  const app = buildApp({
    catalogue: await memoryCatalogue(),
    clusters: await memoryClusters(),
    features: async () => [feature],
    tokens,
    readiness: async () => ({ ready: true, checks: {} }),
    logger: false,
    version: 'bench',
    limits: { maxEventLoopDelayMs: 0 },
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const headers = { authorization: `Bearer ${tokens.issue()}` };
  return {
    server: app.server,
    get: (path) =>
      new Promise((resolve, reject) => {
        request({ port, host: '127.0.0.1', path, headers, agent }, (answer) => {
          answer.resume().on('end', () => {
            if (answer.statusCode === 200) resolve();
            else reject(new Error(`${path} is answered with ${answer.statusCode}`));
          });
        })
          .on('error', reject)
          .end();
      }),
    async [Symbol.asyncDispose]() {
      agent.destroy();
      await app.close();
    },
  };
}
