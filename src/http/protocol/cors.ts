/**
 * Cross-origin requests of browsers, by the Fetch standard's CORS protocol. A listener in front of all others, which is
 * there only where origins are configured: every answer has the fields then, errors and hot ones alike.
 */
import type { IncomingMessage, OutgoingHttpHeader, RequestListener, ServerResponse } from 'node:http';
import { NO_ROUTE, type Recorder } from '../record.ts';
import { type AddressOf, hasBadHost, requestIdOf } from './request.ts';

/** `*`: every origin. */
export type CorsOrigins = '*' | readonly string[];

/** What a page may read of an answer, beside what every page may. */
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

/** What a page may send, beside what every page may. */
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

/** Seconds for which a browser need not ask again; no browser keeps it for longer. */
const MAX_AGE = '7200';

export interface CorsDeps {
  readonly origins: CorsOrigins;
  readonly addressOf: AddressOf;
  readonly recorder: Recorder;
  /** Called with each response that is written here. */
  tellToClose(response: ServerResponse): void;
}

/** Answers preflights, which carry no token, and adds the fields to what the other listener answers. */
export function corsListener(deps: CorsDeps, ordinary: RequestListener): RequestListener {
  const { origins, addressOf, recorder, tellToClose } = deps;
  const allowed = origins === '*' ? undefined : new Set(origins);
  // One answer for every origin does not vary by it.
  const always = allowed ? ['vary', 'Origin'] : [];

  /** The value of `Access-Control-Allow-Origin`; undefined where the page's origin may not read the answer. */
  function permitted({ headers }: IncomingMessage): string | undefined {
    if (!allowed) return '*';
    return headers.origin !== undefined && allowed.has(headers.origin) ? headers.origin : undefined;
  }

  function preflight(request: IncomingMessage, response: ServerResponse, origin: string): void {
    const started = performance.now();
    const id = requestIdOf(request);
    tellToClose(response);
    response
      .writeHead(204, [
        ...['x-request-id', id, 'access-control-allow-origin', origin, ...always],
        ...['access-control-allow-methods', 'GET, HEAD', 'access-control-allow-headers', ALLOWED],
        ...['access-control-max-age', MAX_AGE],
      ])
      .end();
    const told = { id, method: 'OPTIONS', ip: addressOf(request), tier: undefined, grant: undefined };
    recorder.answered(NO_ROUTE, told, 204, performance.now() - started);
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

/** The same for every path: whether there is something is told only to who has a token. */
function isPreflight({ method, headers }: IncomingMessage): boolean {
  return (
    method === 'OPTIONS' &&
    headers.origin !== undefined &&
    headers['access-control-request-method'] !== undefined
  );
}

/**
 * Sends header fields, names and values in turn, with the head of the response. An answer writes its own `Vary`, which would
 * replace one that was set before: here it gets a second line.
 */
function addFields(response: ServerResponse, fields: readonly string[]): void {
  const { writeHead } = response;
  response.writeHead = (status: number, ...rest: readonly unknown[]): ServerResponse => {
    response.writeHead = writeHead;
    const given = rest.find((each) => typeof each === 'object') ?? [];
    const list: readonly OutgoingHttpHeader[] = Array.isArray(given) ? given : Object.entries(given).flat();
    return response.writeHead(status, [...list, ...fields]);
  };
}
