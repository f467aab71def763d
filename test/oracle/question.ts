/** One request of a client, and what came of it. */
import { type Agent, request } from 'node:http';
import type { Organization, Token } from './model.ts';

export type Question =
  | { readonly asks: 'region'; readonly code: string; readonly path: string }
  /** The machines of a region by a search. Its answer is told as the list that it found. */
  | { readonly asks: 'search'; readonly code: string; readonly path: string }
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
export async function ask(agent: Agent, url: string, question: Question, token: Token): Promise<Answer> {
  const answer = await get(agent, url, question.path, token);
  const isFound = question.asks === 'search' && answer.status === 200;
  return isFound ? { ...answer, body: foundBy(answer.body) } : answer;
}

/** Never rejects. */
export function get(agent: Agent, url: string, path: string, { text }: Token): Promise<Answer> {
  const { promise, resolve } = Promise.withResolvers<Answer>();
  const none = (error: Error) =>
    resolve({ status: 0, tier: undefined, asOf: undefined, retryAfter: undefined, body: error.message });
  const asked = request(
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
        const status = response.statusCode ?? 0;
        resolve({
          status,
          tier: tier === undefined ? undefined : String(tier),
          asOf: asOf === undefined ? undefined : Date.parse(String(asOf)),
          retryAfter,
          body: Buffer.concat(chunks).toString(),
        });
      });
    },
  );
  asked.on('timeout', () => asked.destroy(new Error('no answer in time')));
  asked.on('error', none);
  asked.end();
  return promise;
}

/** The machines that a search has found, as a list; what is no whole answer of a search stays as it is. */
function foundBy(body: string): string {
  const { machines, next } = JSON.parse(body) as { machines?: unknown; next?: unknown };
  return next === null && Array.isArray(machines) ? JSON.stringify(machines) : body;
}
