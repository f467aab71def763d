/** What is told of every request: a line in the log, and the outcome that metrics count. */
import type { Logger } from 'pino';
import type { Grant } from '../domain/scope.ts';
import { loggableError } from '../lib/driver-error.ts';
import type { Tier } from '../snapshot/document/answer.ts';

export interface RequestOutcome {
  /** The route's pattern, such as `/v1/machines/{id}`; `(none)` where no route is. Never a raw path. */
  readonly route: string;
  /** As Node parsed it; `(none)` for what was no HTTP request. */
  readonly method: string;
  readonly status: number;
  readonly seconds: number;
  /** The tier that answered, where one did. */
  readonly tier: Tier | undefined;
  /** True of a stream, a download and a request that waited for changes. */
  readonly lasts?: boolean | undefined;
}

export const NO_ROUTE = '(none)';

/** What is told of a request. Fastify's has all of it. */
export interface RecordedRequest {
  readonly id: string;
  readonly method: string;
  /** The client's address. Read only for a line in the log. */
  readonly ip: string;
  readonly tier: Tier | undefined;
  readonly grant: Grant | undefined;
  readonly lasts?: boolean;
}

export interface Recorder {
  /** After a response, `ms` after its request: neither the query nor the path is told, only the route's pattern. */
  answered(route: string, request: RecordedRequest, status: number, ms: number): void;
  /** After an answer that was given without the framework, to what was hardly a request. */
  refused(method: string, status: number, requestId: string, code: string | undefined): void;
  /** An error that nobody expected; the client learns nothing of it but the request's id. */
  failed(error: unknown, request: Pick<RecordedRequest, 'id'>): void;
  /** A tier that did not answer. */
  unavailable(error: Error, request: Pick<RecordedRequest, 'id'>): void;
}

export interface RecorderOptions {
  readonly logger: Logger | false;
  readonly observe: ((facts: RequestOutcome) => void) | undefined;
  /** The share of answers below status 400 that get a line, from 0 to 1; all others do. */
  readonly logSuccesses: number;
  /** Patterns of routes whose answers are told at debug, whatever they are: somebody asks every few seconds. */
  readonly quiet: readonly string[];
}

export function recorder({ logger, observe, logSuccesses, quiet }: RecorderOptions): Recorder {
  const isLogged = sampler(logSuccesses);
  return {
    answered(route, request, status, ms) {
      const { tier, method, grant, lasts } = request;
      observe?.({ route, method, status, seconds: ms / 1000, tier, lasts });
      if (!logger || (status < 400 && !isLogged())) return;
      const line = {
        requestId: request.id,
        method,
        route,
        status,
        ms: Math.round(ms * 1000) / 1000,
        ip: request.ip,
        ...(tier && { tier }),
        ...(grant && { token: grant.tokenId, organization: grant.organizationId }),
      };
      if (quiet.includes(route)) logger.debug(line, 'answered');
      else logger.info(line, 'answered');
    },
    refused(method, status, requestId, code) {
      observe?.({ route: NO_ROUTE, method, status, seconds: 0, tier: undefined });
      if (logger) logger.info({ requestId, method, route: NO_ROUTE, status, code }, 'refused');
    },
    failed(error, request) {
      if (logger) logger.error({ requestId: request.id, err: loggableError(error) }, 'a request failed');
    },
    unavailable(error, request) {
      if (logger) logger.warn({ requestId: request.id, reason: error.message }, 'no fresh answer');
    },
  };
}

/**
 * Says yes with this probability each time, independently, as `Math.random() < share` would: but how many come until
 * the next yes is drawn once for all of them.
 */
function sampler(share: number): () => boolean {
  const draw = () => (share >= 1 ? 0 : Math.floor(Math.log(1 - Math.random()) / Math.log1p(-share)));
  let left = share > 0 ? draw() : Number.POSITIVE_INFINITY;
  return () => {
    if (left > 0) {
      left -= 1;
      return false;
    }
    left = draw();
    return true;
  };
}
