/** Answers other methods on known paths, and unknown paths. */
import type { FastifyInstance, FastifyRequest, RouteShorthandOptions } from 'fastify';
import { guard } from '../auth.ts';
import type { OperationDeps } from '../operation.ts';
import { METHOD_NOT_ALLOWED, METHODS, sendProblem, UNKNOWN_PATH } from '../protocol/problem.ts';
import { NO_ROUTE } from '../record-requests.ts';

/** Uses an ordinary route, because the framework's not-found handler would parse a body before the token is verified. */
export function addNotFound(
  app: FastifyInstance,
  known: readonly { path: string; open: boolean }[],
  deps: OperationDeps,
): void {
  const { pressure, recorder } = deps;
  const patterns = known.map((each) => ({ ...each, pattern: pathPattern(each.path) }));
  const find = (request: FastifyRequest) => {
    const path = pathOf(request.raw.url ?? '');
    return patterns.find(({ pattern }) => pattern.test(path));
  };
  const check = guard(deps, undefined);
  addEveryPath(
    app,
    [
      pressure,
      async (request, reply) => {
        const found = find(request);
        const problem = found?.open ? undefined : await check(request, reply);
        return sendProblem(reply, problem ?? (found ? METHOD_NOT_ALLOWED : UNKNOWN_PATH));
      },
    ],
    (request, reply, done) => {
      recorder.answered(find(request)?.path ?? NO_ROUTE, request, reply.statusCode, reply.elapsedTime);
      done();
    },
  );
}

/** Adds a route for all paths and methods that have no other. @param onRequest answers */
export function addEveryPath(
  app: FastifyInstance,
  onRequest: NonNullable<RouteShorthandOptions['onRequest']>,
  onResponse: NonNullable<RouteShorthandOptions['onResponse']> = [],
): void {
  for (const method of METHODS) {
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  }
  app.route({
    method: [...app.supportedMethods],
    url: '*',
    onRequest,
    onResponse,
    handler: (_, reply) => sendProblem(reply, UNKNOWN_PATH),
  });
}

function pathPattern(path: string): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]*')}$`);
}

/** Returns the path of a request target, decoded except for slashes, like in the router. */
function pathOf(url: string): string {
  const [path = ''] = url.replace(/^https?:\/\/[^/]*/i, '').split(/[?#]/, 1);
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
