/** One request of a client, and what came of it. */
import { type Agent, get } from 'node:http';
import type { Organization, Token } from './model.ts';

export type Question =
  | { readonly asks: 'region'; readonly code: string; readonly path: string }
  | { readonly asks: 'machine'; readonly key: string; readonly path: string }
  | { readonly asks: 'clusters'; readonly organization: Organization; readonly path: string }
  | {
      readonly asks: 'cluster';
      readonly organization: Organization;
      readonly slug: string;
      readonly path: string;
    };

export interface Answer {
  /** 0 where there was none. */
  readonly status: number;
  readonly tier: string | undefined;
  /** Milliseconds since the epoch; undefined where the answer does not say how old it is. */
  readonly asOf: number | undefined;
  readonly retryAfter: string | undefined;
  readonly body: string;
}

const DEADLINE_MS = 15_000;

/** Never rejects. */
export function ask(agent: Agent, url: string, { path }: Question, { text }: Token): Promise<Answer> {
  const { promise, resolve } = Promise.withResolvers<Answer>();
  const none = (error: Error) =>
    resolve({ status: 0, tier: undefined, asOf: undefined, retryAfter: undefined, body: error.message });
  const request = get(
    url + path,
    { agent, timeout: DEADLINE_MS, headers: { authorization: `Bearer ${text}` } },
    (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', none);
      response.on('end', () => {
        const {
          'fleetbook-tier': tier,
          'fleetbook-as-of': asOf,
          'retry-after': retryAfter,
        } = response.headers;
        resolve({
          status: response.statusCode ?? 0,
          tier: tier === undefined ? undefined : String(tier),
          asOf: asOf === undefined ? undefined : Date.parse(String(asOf)),
          retryAfter,
          body: Buffer.concat(chunks).toString(),
        });
      });
    },
  );
  request.on('timeout', () => request.destroy(new Error('no answer in time')));
  request.on('error', none);
  return promise;
}
