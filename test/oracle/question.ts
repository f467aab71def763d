/** One request of a client, and its answer. */
import { type Agent, request } from 'node:http';
import type { Organization, Token } from './model.ts';

export type Question =
  | { readonly about: 'region'; readonly code: string; readonly path: string }
  /** The machines of a region by a search. The answer is converted to a list. */
  | { readonly about: 'search'; readonly code: string; readonly path: string }
  | { readonly about: 'machine'; readonly key: string; readonly path: string }
  | { readonly about: 'clusters'; readonly organization: Organization; readonly path: string }
  | {
      readonly about: 'cluster';
      readonly organization: Organization;
      readonly slug: string;
      readonly path: string;
    };

export interface Answer {
  /** 0 without an answer. */
  readonly status: number;
  readonly tier: string | undefined;
  /** `Fleetbook-As-Of` in milliseconds since the epoch; undefined without it. */
  readonly asOf: number | undefined;
  readonly retryAfter: string | undefined;
  readonly body: string;
}

const DEADLINE_MS = 15_000;

/** Never rejects. */
export async function sendQuestion(
  agent: Agent,
  url: string,
  question: Question,
  token: Token,
): Promise<Answer> {
  const answer = await get(agent, url, question.path, token);
  const isFound = question.about === 'search' && answer.status === 200;
  return isFound ? { ...answer, body: foundBy(answer.body) } : answer;
}

/** Never rejects. */
export function get(agent: Agent, url: string, path: string, { text }: Token): Promise<Answer> {
  const { promise, resolve } = Promise.withResolvers<Answer>();
  const none = (error: Error) =>
    resolve({ status: 0, tier: undefined, asOf: undefined, retryAfter: undefined, body: error.message });
  const sent = request(
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
  sent.on('timeout', () => sent.destroy(new Error('no answer in time')));
  sent.on('error', none);
  sent.end();
  return promise;
}

/** Returns the machines of a search as a list. Does not change any other text. */
function foundBy(body: string): string {
  const { machines, next } = JSON.parse(body) as { machines?: unknown; next?: unknown };
  return next === null && Array.isArray(machines) ? JSON.stringify(machines) : body;
}
