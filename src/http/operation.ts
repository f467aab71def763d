/** An operation that answers from the readers, declared once: what routes it also documents it. */
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  HookHandlerDoneFunction,
  onRequestHookHandler,
} from 'fastify';
import type { Grant } from '../domain/grant.ts';
import type { Scope } from '../domain/token.ts';
import type { Answer, HeldAnswer, Remembering } from '../snapshot/document/answer.ts';
import { type GuardDeps, guard, guardHook } from './auth.ts';
import { type Answered, hotPath } from './hot-path.ts';
import type { WithinTime } from './protocol/deadline.ts';
import { accepts } from './protocol/negotiate.ts';
import {
  type Found,
  type Parameters,
  parameterReader,
  type QueryString,
  type Values,
} from './protocol/parameters.ts';
import { NOT_ACCEPTABLE, NOT_FOUND, Problem, sendProblem } from './protocol/problem.ts';
import type { Recorder } from './record.ts';
import type { Schema } from './schemas.ts';
import { canBeSent, type SendAnswer } from './send.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** When a request that is not answered on the hot path began, by `performance.now()`. */
    startedAt: number;
  }
}

export interface OperationDoc {
  readonly id: string;
  readonly summary: string;
  readonly description: string;
  /** The 200 answer's JSON Schema and what one looks like. */
  readonly answers: Schema;
  readonly example: unknown;
  /** Not one of the four operations that were given, but added by us. */
  readonly extension: boolean;
}

export interface Operation<P extends Parameters = Parameters> {
  /** As OpenAPI writes it: `/v1/machines/{id}`. */
  readonly path: string;
  readonly scope: Scope;
  readonly parameters: P;
  readonly doc: OperationDoc;
  /** True where the answer is the same for every organization. */
  readonly shared: boolean;
  /** Undefined where nothing is there. @throws Unavailable */
  read(values: Values<P>, grant: Grant): Promise<Answer | undefined>;
  /** Without it nothing is answered on the hot path. */
  readonly memory?: OperationMemory<P> | undefined;
}

export interface OperationMemory<P extends Parameters = Parameters> {
  /** As `Operation.read`, out of memory alone; undefined says nothing. */
  held(values: Values<P>, grant: Grant): HeldAnswer | undefined;
  /** Keeps what `held` gives. */
  readonly remembering: Remembering;
}

/** Ties the type of `read`'s values to the parameters, then forgets it, so that operations make one list. */
export function operation<const P extends Parameters>(definition: Operation<P>): Operation {
  return {
    ...definition,
    read: (values, grant) => definition.read(values as Values<P>, grant),
    memory: definition.memory as OperationMemory | undefined,
  };
}

export interface OperationDeps extends GuardDeps {
  readonly recorder: Recorder;
  readonly sendAnswer: SendAnswer;
  /** In which a reader has to answer. */
  readonly within: WithinTime;
  /** Refuses a request that would have to wait. */
  readonly pressure: onRequestHookHandler;
  /** Whether what memory holds is answered on the hot path. */
  readonly hot: boolean;
}

/** Routes GET and HEAD. The order is the contract's: who asks, then what is accepted, what is asked, what is there. */
export function addOperation(
  app: FastifyInstance,
  { path, scope, shared, parameters, read, memory }: Operation,
  deps: OperationDeps,
) {
  const readParameters = parameterReader(parameters);
  const answered: Answered = (request, status, ms) => deps.recorder.answered(path, request, status, ms);
  const hot =
    deps.hot && memory
      ? [
          hotPath({
            tokens: deps.tokens,
            scope,
            shared,
            remembering: memory.remembering,
            answered,
            sendAnswer: deps.sendAnswer,
            held(request, grant) {
              const values = readParameters(found(request));
              return values instanceof Problem ? undefined : memory.held(values, grant);
            },
          }),
        ]
      : [];
  app.route({
    method: ['GET', 'HEAD'],
    url: routePattern(path),
    onRequest: [...hot, startClock, deps.pressure, guardHook(guard(deps, scope))],
    // Problems alone come by here: answers are not sent in the framework's way.
    onSend: (request, { statusCode }, payload, done) => {
      answered(request, statusCode, performance.now() - request.startedAt);
      done(null, payload);
    },
    handler: async (request, reply) => {
      if (!accepts(request.headers)) return sendProblem(reply, NOT_ACCEPTABLE);
      const values = readParameters(found(request));
      if (values instanceof Problem) return sendProblem(reply, values);
      const answer = await deps.within(read(values, grantOf(request)));
      if (answer === undefined) return sendProblem(reply, NOT_FOUND);
      if (!canBeSent(request.raw, answer)) await deps.within(compressed(answer));
      const status = deps.sendAnswer(request, reply, answer, deps.rateLimit && reply.getHeaders());
      answered(request, status, performance.now() - request.startedAt);
      return reply;
    },
  });
}

function startClock(request: FastifyRequest, _: FastifyReply, done: HookHandlerDoneFunction): void {
  request.startedAt = performance.now();
  done();
}

async function compressed({ body }: Answer): Promise<void> {
  await body.compress?.();
}

function found({ params, query }: FastifyRequest): Found {
  return { path: params as Found['path'], query: (query as { query: QueryString }).query };
}

/** `/v1/machines/{id}` → `/v1/machines/:id`. */
function routePattern(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}

function grantOf({ grant }: { grant: Grant | undefined }): Grant {
  if (grant === undefined) throw new Error('a route without a guard has no grant');
  return grant;
}
