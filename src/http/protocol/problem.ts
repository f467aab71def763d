import type { FastifyReply } from 'fastify';
import { STATUS_CODES } from './http.ts';

/**
 * `about:blank` where the status says all (RFC 9457, 4.2.1). Where a problem has members of its own it has a type of
 * its own, a URN: a relative reference would be another identifier behind every proxy that adds a prefix, and an
 * absolute one would promise a page on somebody's server.
 */
type ProblemType = 'about:blank' | `urn:fleetbook:problem:${string}`;

export interface ProblemOptions {
  readonly type?: ProblemType;
  /** The status's own phrase unless given; only for a `type` of our own. */
  readonly title?: string;
  /** Repeats of the request nothing but a parameter, see parameters.ts. */
  readonly detail: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Members of the problem's type. */
  readonly members?: Readonly<Record<string, unknown>>;
}

/** An RFC 9457 problem, encoded but for its `instance`, which is the request's id. */
export class Problem {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly #start: string;

  constructor(status: number, { type = 'about:blank', title, detail, headers, members }: ProblemOptions) {
    this.status = status;
    this.headers = {
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      ...headers,
    };
    const content = { type, title: title ?? STATUS_CODES[status], status, detail, ...members };
    this.#start = `${JSON.stringify(content).slice(0, -1)},"instance":"`;
  }

  /** @param requestId well formed, so that it needs no escaping */
  body(requestId: string): Buffer {
    return Buffer.from(`${this.#start}${requestId}"}`);
  }
}

/** Answers with a problem. The request id goes into the header where all answers are sent, see app.ts. */
export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply.code(problem.status).headers(problem.headers).send(problem.body(reply.request.id));
}

/** The same for a cluster of another organization and for one that does not exist. */
export const NOT_FOUND = new Problem(404, { detail: 'There is nothing here that this token may read.' });

/** For a path that no operation has. */
export const UNKNOWN_PATH = new Problem(404, {
  detail: 'No operation has this path. /openapi.json lists all paths.',
});

export const METHOD_NOT_ALLOWED = new Problem(405, {
  detail: 'Only GET and HEAD are answered.',
  headers: { allow: 'GET, HEAD' },
});

export const NOT_ACCEPTABLE = new Problem(406, {
  detail:
    'The answer is application/json, plain or in the codings br and gzip; the request accepts none of these.',
});

export const INTERNAL_ERROR = new Problem(500, {
  detail: 'Something failed on our side. The id in "instance" finds it in the log.',
});

/** Nothing fresh is to be had: the tiers are down or at their limit. */
export function unavailable(retryAfterSeconds: number): Problem {
  return new Problem(503, {
    detail: 'No fresh answer is to be had at the moment; try again after the pause in Retry-After.',
    headers: { 'retry-after': String(Math.max(1, Math.ceil(retryAfterSeconds))) },
  });
}

/** A problem that the framework or the transport found: the status says all that may be said. */
export function plainProblem(status: number, detail: string): Problem {
  return new Problem(status, { detail });
}
