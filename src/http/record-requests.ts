/** Records every request: a log line, and an outcome for metrics. */
import type { Logger } from 'pino';
import { loggableError } from '../domain/errors.ts';
import type { RequestOutcome } from '../domain/request-outcome.ts';
import type { Grant } from '../domain/scope.ts';
import type { Tier } from '../snapshot/document/answer.ts';

export const NO_ROUTE = '(none)';

/** The recorded part of a request. Fastify's request has all of it. */
export interface RecordedRequest {
  readonly id: string;
  readonly method: string;
  /** The client's address. Read only for a line in the log. */
  readonly ip: string;
  readonly tier: Tier | undefined;
  readonly grant: Grant | undefined;
  readonly lasts?: boolean;
}

/** Runs the rest of a request, so that its log lines have its id. */
export type InLogContext = (fields: { readonly requestId: string }, work: () => void) => void;

export interface Recorder {
  /** Records a response, `ms` after its request. It records the route's pattern, and neither path nor query. */
  answered(route: string, request: RecordedRequest, status: number, ms: number): void;
  /** Records the answer to a malformed request, which the framework has not seen. */
  refused(method: string, status: number, requestId: string, code: string | undefined): void;
  failed(error: unknown, request: Pick<RecordedRequest, 'id'>): void;
  unavailable(error: Error, request: Pick<RecordedRequest, 'id'>): void;
}

export interface RecorderOptions {
  readonly logger: Logger | false;
  readonly observe: ((facts: RequestOutcome) => void) | undefined;
  /** The logged share of answers below status 400, from 0 to 1. All others are logged. */
  readonly logSuccesses: number;
  /** Patterns of routes that are logged at debug: monitors request them every few seconds. */
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

/** Returns true with this probability, like `Math.random() < share`, but draws the distance to the next true once. */
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
