/** Answers other methods on known paths, and unknown paths. */
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import { type GuardDeps, guard } from '../auth.ts';
import { METHOD_NOT_ALLOWED, METHODS, sendProblem, UNKNOWN_PATH } from '../protocol/problem.ts';
import { NO_ROUTE, type Recorder } from '../record.ts';

export interface KnownPath {
  /** In OpenAPI's format. */
  readonly path: string;
  /** Whether it answers without a token. */
  readonly open: boolean;
}

export interface NotFoundDeps extends GuardDeps {
  readonly known: readonly KnownPath[];
  readonly recorder: Recorder;
  /** Rejects requests while the event loop is late. */
  readonly pressure: onRequestHookHandler;
}

/**
 * Adds a route for all other methods and paths. (The framework's not-found handler would parse a body, and reject it, before the
 * token is verified.)
 */
export function addNotFound(app: FastifyInstance, deps: NotFoundDeps): void {
  const { known, pressure, recorder } = deps;
  const patterns = known.map((each) => ({ ...each, pattern: pathPattern(each.path) }));
  const find = (request: FastifyRequest) => {
    const path = pathOf(request.raw.url ?? '');
    return patterns.find(({ pattern }) => pattern.test(path));
  };
  const check = guard(deps, undefined);
  for (const method of METHODS) {
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  }
  app.route({
    method: [...app.supportedMethods],
    url: '*',
    onRequest: [
      pressure,
      async (request, reply) => {
        const found = find(request);
        const problem = found?.open ? undefined : await check(request, reply);
        return sendProblem(reply, problem ?? (found ? METHOD_NOT_ALLOWED : UNKNOWN_PATH));
      },
    ],
    onResponse(request, reply, done) {
      recorder.answered(find(request)?.path ?? NO_ROUTE, request, reply.statusCode, reply.elapsedTime);
      done();
    },
    handler: (_, reply) => sendProblem(reply, UNKNOWN_PATH),
  });
}

function pathPattern(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]*')}$`);
}

/** Returns the path of a request target, decoded except for slashes, like in the router. */
function pathOf(url: string): string {
  const path = url.replace(/^https?:\/\/[^/]*/i, '').replace(/[?#].*$/s, '');
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
