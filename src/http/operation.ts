/** An operation that answers from the readers, declared once: what routes it also documents it. */
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  HookHandlerDoneFunction,
  onRequestHookHandler,
} from 'fastify';
import type { z } from 'zod';
import type { Grant, Scope } from '../domain/scope.ts';
import { type Answer, type EncodedBody, type MaybePromise, whenThere } from '../snapshot/document/answer.ts';
import { type GuardDeps, guard, guardHook } from './auth.ts';
import type { Schema } from './openapi-schemas.ts';
import { PreparedAnswer } from './prepared-answer.ts';
import { accepts } from './protocol/negotiate.ts';
import { type Parameters, requestSchemas, type Values } from './protocol/parameters.ts';
import { NOT_ACCEPTABLE, NOT_FOUND, Problem, sendProblem } from './protocol/problem.ts';
import type { Recorder } from './record.ts';
import { EVERYBODY, type ResponseCache } from './response-cache.ts';
import type { SendAnswer } from './send.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** When the request was routed, by `performance.now()`. */
    startedAt: number;
    /** True of a stream, a download and a request that waited for changes: their time says nothing of the server. */
    lasts: boolean;
  }
}

export interface OperationDoc {
  readonly id: string;
  readonly summary: string;
  readonly description: string;
  /** The 200 answer's schema and what one looks like. */
  readonly answers: z.ZodType;
  /** The media types of the answer; JSON unless given. */
  readonly types?: readonly string[];
  readonly example: unknown;
  /** Not one of the four operations that were given, but added by us. */
  readonly extension: boolean;
  /** What the 200 answer may be beside JSON, and what is answered beside what every operation may answer; as OpenAPI has it. */
  readonly otherContent?: Schema;
  readonly otherResponses?: Schema;
}

/** What every operation says of itself. */
export interface OperationBase<P extends Parameters = Parameters> {
  /** As OpenAPI writes it: `/v1/machines/{id}`. */
  readonly path: string;
  readonly scope: Scope;
  readonly parameters: P;
  /** True where unknown query parameters are refused; else they are ignored. */
  readonly isStrict?: boolean;
  readonly doc: OperationDoc;
}

export interface Operation<P extends Parameters = Parameters> extends OperationBase<P> {
  /** True where the answer is the same for every organization. */
  readonly shared: boolean;
  /** Undefined where nothing is there. At once where memory has it. Rejects with `Unavailable`. */
  read(values: Values<P>, grant: Grant): MaybePromise<Answer | Problem | undefined>;
}

/** An operation as far as the documentation tells of it. Without a scope of its own its description says what it needs. */
export type DescribedOperation = Omit<OperationBase, 'scope'> & {
  readonly scope: Scope | undefined;
};

/** Ties the type of `read`'s values to the parameters, then forgets it, so that operations make one list. */
export function operation<const P extends Parameters>(definition: Operation<P>): Operation {
  return { ...definition, read: (values, grant) => definition.read(values as Values<P>, grant) };
}

export interface OperationDeps extends GuardDeps {
  readonly recorder: Recorder;
  readonly sendAnswer: SendAnswer;
  /** Refuses a request that would have to wait. */
  readonly pressure: onRequestHookHandler;
  /** Filled with what may be given again. */
  readonly responses: ResponseCache | undefined;
}

/** Routes GET and HEAD. The order is the contract's: who asks, then what is accepted, what is asked, what is there. */
export function addOperation(
  app: FastifyInstance,
  { path, scope, shared, parameters, isStrict, read }: Operation,
  deps: OperationDeps,
) {
  const { recorder, sendAnswer, withDeadline, rateLimit, responses } = deps;

  function answered(request: FastifyRequest, status: number): void {
    recorder.answered(path, request, status, performance.now() - request.startedAt);
  }

  /** Sends an answer, after its coding is made. */
  function send(request: FastifyRequest, reply: FastifyReply, prepared: PreparedAnswer): MaybePromise<void> {
    const { body } = prepared.answer;
    const coded = prepared.canBeSentTo(request.raw) ? undefined : withDeadline(compressed(body));
    return whenThere(coded, () =>
      answered(request, sendAnswer(request, reply, prepared, rateLimit && reply.getHeaders())),
    );
  }

  function answer(request: FastifyRequest, reply: FastifyReply): MaybePromise<void> {
    const grant = grantOf(request);
    const target = request.raw.url ?? '';
    const cached = responses?.get(target, grant.organizationId);
    if (cached) return send(request, reply, cached.prepared);
    const reading = read(valuesOf(request), grant);
    return whenThere(reading instanceof Promise ? withDeadline(reading) : reading, (found) => {
      if (found === undefined || found instanceof Problem) {
        sendProblem(reply, found ?? NOT_FOUND);
        return undefined;
      }
      const prepared = new PreparedAnswer(found);
      const sending = send(request, reply, prepared);
      // An answer that had to be waited for may be outdated by now.
      if (sending instanceof Promise || reading instanceof Promise) return sending;
      const owner = shared ? EVERYBODY : grant.organizationId;
      responses?.set({ target, owner, route: path, scope }, found, prepared);
      return sending;
    });
  }

  app.route({
    method: ['GET', 'HEAD'],
    url: routePattern(path),
    schema: requestSchemas(path, parameters, isStrict),
    onRequest: [startClock, deps.pressure, guardHook(guard(deps, scope))],
    preValidation: refuseUnacceptable,
    // Problems alone come by here: answers are not sent in the framework's way.
    onSend: (request, { statusCode }, payload, done) => {
      answered(request, statusCode);
      done(null, payload);
    },
    handler: answer,
  });
}

export function startClock(request: FastifyRequest, _: FastifyReply, done: HookHandlerDoneFunction): void {
  request.startedAt = performance.now();
  done();
}

async function compressed(body: EncodedBody): Promise<void> {
  await body.compress?.();
}

function refuseUnacceptable(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  done: HookHandlerDoneFunction,
): void {
  if (accepts(headers)) done();
  else sendProblem(reply, NOT_ACCEPTABLE);
}

/** The values of a request that its schemas accept. */
export function valuesOf<P extends Parameters>({ params, query }: FastifyRequest): Values<P> {
  return { ...(params as Values<P>), ...(query as Values<P>) };
}

/** `/v1/machines/{id}` → `/v1/machines/:id`. */
export function routePattern(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}

export function grantOf({ grant }: { grant: Grant | undefined }): Grant {
  if (grant === undefined) throw new Error('a route without a guard has no grant');
  return grant;
}
