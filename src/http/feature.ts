import type { FastifyInstance } from 'fastify';
import type { DescribedOperation, Operation, OperationDeps } from './operation.ts';
import type { HttpLimits } from './protocol/limits.ts';
import type { StreamOperation } from './stream-operation.ts';

/** A feature's part of the API. */
export interface ApiPart {
  readonly operations?: readonly Operation[];
  readonly streams?: readonly StreamOperation[];
  /** Adds routes that are no operations. `described` documents them. */
  readonly addRoutes?: (app: FastifyInstance, deps: RouteDeps) => void;
  readonly described?: readonly DescribedOperation[];
}

export interface RouteDeps extends OperationDeps {
  readonly limits: HttpLimits;
  /** Streams and waiting requests. The server ends them when it closes. */
  readonly endless: Set<{ end(): void }>;
}

export type ApiFeature = (limits: HttpLimits) => ApiPart;
