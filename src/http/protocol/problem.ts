import type { FastifyReply } from 'fastify';

/** Not by `import`, which evaluates every getter of `node:http`: one loads all of undici, a tenth of a reader's start. */
export const { METHODS, STATUS_CODES } = process.getBuiltinModule('node:http');

/**
 * `about:blank` if the status is enough (RFC 9457, 4.2.1). A problem with further members has a URN: a relative reference would
 * change behind a proxy that adds a prefix, and an absolute URL would promise a page.
 */
type ProblemType = 'about:blank' | `urn:fleetbook:problem:${string}`;

export interface ProblemOptions {
  readonly type?: ProblemType;
  readonly title?: string;
  /** Contains nothing of the request except a parameter, see parameters.ts. */
  readonly detail: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly members?: Readonly<Record<string, unknown>>;
}

/** An RFC 9457 problem, encoded once. `body` adds `instance`, the request's id. */
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

  /** @param requestId well formed: it is not escaped */
  body(requestId: string): Buffer {
    return Buffer.from(`${this.#start}${requestId}"}`);
  }
}

/** Answers with a problem. A hook in app.ts adds the request id as a header. */
export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply.code(problem.status).headers(problem.headers).send(problem.body(reply.request.id));
}

/** Equal for a cluster of another organization and for one that does not exist. */
export const NOT_FOUND = new Problem(404, { detail: 'There is nothing here that this token may read.' });

export const UNKNOWN_PATH = new Problem(404, {
  detail: 'No operation has this path. /openapi.json lists all paths.',
});

export const METHOD_NOT_ALLOWED = new Problem(405, {
  detail: 'Only GET and HEAD are answered.',
  headers: { allow: 'GET, HEAD' },
});

export function notAcceptable(mediaType: string): Problem {
  return new Problem(406, {
    detail: `The answer is ${mediaType}, plain or in the codings br and gzip; the request accepts none of these.`,
  });
}
export const NOT_ACCEPTABLE = notAcceptable('application/json');

export const INTERNAL_ERROR = new Problem(500, {
  detail: 'Something failed on our side. The id in "instance" finds it in the log.',
});

export function unavailable(retryAfterSeconds: number): Problem {
  return new Problem(503, {
    detail: 'No fresh answer is to be had at the moment; try again after the pause in Retry-After.',
    headers: { 'retry-after': String(Math.max(1, Math.ceil(retryAfterSeconds))) },
  });
}

export function plainProblem(status: number, detail: string): Problem {
  return new Problem(status, { detail });
}
