/**
 * CORS, by the Fetch standard. If origins are configured, this listener runs before all others, so that every answer has the
 * fields, also errors and hot answers.
 */
import type { IncomingMessage, OutgoingHttpHeader, RequestListener, ServerResponse } from 'node:http';
import { NO_ROUTE, type Recorder } from '../record-requests.ts';
import { type AddressOf, hasBadHost, requestIdOf } from './request.ts';

export type CorsOrigins = '*' | readonly string[];

/** Response fields, in addition to the safelisted ones. */
const EXPOSED = [
  'ETag',
  'Fleetbook-As-Of',
  'Fleetbook-Currency',
  'Fleetbook-Tier',
  'Fleetbook-Export-Version',
  'X-Request-Id',
  'Retry-After',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'WWW-Authenticate',
  'Allow',
  'Accept-Ranges',
  'Content-Range',
  'Content-Encoding',
  'Content-Disposition',
].join(', ');

/** Request fields, in addition to the safelisted ones. */
const ALLOWED = [
  'Authorization',
  'If-None-Match',
  'If-Range',
  'Range',
  'Last-Event-ID',
  'Cache-Control',
  'X-Request-Id',
  'Traceparent',
  'Tracestate',
].join(', ');

/** Seconds for which a browser caches a preflight: the longest time that browsers accept. */
const MAX_AGE = '7200';

export interface CorsDeps {
  readonly origins: CorsOrigins;
  readonly addressOf: AddressOf;
  readonly recorder: Recorder;
  closeLater(response: ServerResponse): void;
}

/** Answers preflights, which carry no token, and adds the fields to all other answers. */
export function corsListener(deps: CorsDeps, ordinary: RequestListener): RequestListener {
  const { origins, addressOf, recorder, closeLater } = deps;
  const allowed = origins === '*' ? undefined : new Set(origins);
  // With `*` the answer does not depend on the origin.
  const always = allowed ? ['vary', 'Origin'] : [];

  function permitted({ headers }: IncomingMessage): string | undefined {
    if (!allowed) return '*';
    return headers.origin !== undefined && allowed.has(headers.origin) ? headers.origin : undefined;
  }

  function preflight(request: IncomingMessage, response: ServerResponse, origin: string): void {
    const started = performance.now();
    const id = requestIdOf(request);
    closeLater(response);
    response
      .writeHead(204, [
        ...['x-request-id', id, 'access-control-allow-origin', origin, ...always],
        ...['access-control-allow-methods', 'GET, HEAD', 'access-control-allow-headers', ALLOWED],
        ...['access-control-max-age', MAX_AGE],
      ])
      .end();
    const recorded = { id, method: 'OPTIONS', ip: addressOf(request), tier: undefined, grant: undefined };
    recorder.answered(NO_ROUTE, recorded, 204, performance.now() - started);
  }

  return (request, response) => {
    const origin = permitted(request);
    if (origin !== undefined && isPreflight(request) && !hasBadHost(request)) {
      preflight(request, response, origin);
      return;
    }
    const readable =
      origin === undefined
        ? []
        : ['access-control-allow-origin', origin, 'access-control-expose-headers', EXPOSED];
    addFields(response, [...always, ...readable]);
    ordinary(request, response);
  };
}

/** Preflights of all paths get the same answer: without a token, nothing reveals which paths exist. */
function isPreflight({ method, headers }: IncomingMessage): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined
  );
}

const ADDED = Symbol('added fields');

interface Added {
  readonly fields: readonly string[];
  /** That of the response before. */
  readonly writeHead: ServerResponse['writeHead'];
}

type WithAdded = ServerResponse & { [ADDED]?: Added | undefined };

/**
 * Adds header fields to the head of the response. @param fields names and values in turn. `Vary` gets a second line: the
 * answer's own one would replace a value that was set before.
 */
export function addFields(response: WithAdded, fields: readonly string[]): void {
  response[ADDED] = { fields, writeHead: response.writeHead };
  response.writeHead = (status: number, ...rest: readonly unknown[]): ServerResponse => {
    const added = takeAddedFields(response) ?? [];
    const given = rest.find((each) => typeof each === 'object') ?? [];
    const list: readonly OutgoingHttpHeader[] = Array.isArray(given) ? given : Object.entries(given).flat();
    return response.writeHead(status, [...list, ...added]);
  };
}

/** Returns the added fields. Its caller writes them, and `writeHead` does not any more. */
export function takeAddedFields(response: WithAdded): readonly string[] | undefined {
  const added = response[ADDED];
  if (!added) return undefined;
  response[ADDED] = undefined;
  response.writeHead = added.writeHead;
  return added.fields;
}
