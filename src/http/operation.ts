/** Operations that answer from readers. One declaration routes and documents an operation. */
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  HookHandlerDoneFunction,
  onRequestHookHandler,
  preValidationHookHandler,
} from 'fastify';
import type { z } from 'zod';
import type { Grant, Scope } from '../domain/scope.ts';
import { type Answer, type EncodedBody, type MaybePromise, whenThere } from '../snapshot/document/answer.ts';
import { type GuardDeps, guard, guardHook } from './auth.ts';
import { PreparedAnswer } from './hot/prepared-answer.ts';
import { type ResponseCache, SHARED } from './hot/response-cache.ts';
import type { Schema } from './openapi-schemas.ts';
import { type FindSource, isYoungEnough, tooOld } from './protocol/max-age.ts';
import { accepts } from './protocol/negotiate.ts';
import { type Parameters, requestSchemas, type Values } from './protocol/parameters.ts';
import { NOT_ACCEPTABLE, NOT_FOUND, notAcceptable, Problem, sendProblem } from './protocol/problem.ts';
import type { Turns } from './protocol/turns.ts';
import type { Recorder } from './record-requests.ts';
import type { CONTRACT_SCHEMAS } from './schemas.ts';
import type { AnsweredRequest, RawReply, SendAnswer } from './send.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** See `AnsweredRequest`. */
    startedAt: number;
    /** True for a stream and a download: their duration does not measure the server. */
    lasts: boolean;
  }
}

export interface OperationDoc {
  readonly id: string;
  readonly summary: string;
  readonly description: string;
  /** Called for `/openapi.json`, which loads the contract's schemas: the start does not need them. */
  readonly answers: (contract: typeof CONTRACT_SCHEMAS) => z.ZodType;
  /** The media types of a stream. */
  readonly types?: readonly string[];
  readonly example: unknown;
  /** False for the four operations of the original contract. */
  readonly extension: boolean;
  /** Further content of the 200 answer, and further responses, in OpenAPI's format. */
  readonly otherContent?: Schema;
  readonly otherResponses?: Schema;
}

export interface OperationBase<P extends Parameters = Parameters> {
  /** In OpenAPI's format: `/v1/machines/{id}`. */
  readonly path: string;
  readonly scope: Scope;
  readonly parameters: P;
  readonly isStrict?: boolean;
  /** Of the answer; JSON unless given. */
  readonly mediaType?: string;
  readonly doc: OperationDoc;
}

export interface Operation<P extends Parameters = Parameters> extends OperationBase<P> {
  /** True if the answer is the same for every organization. */
  readonly shared: boolean;
  /** Returns undefined for 404. Synchronous if memory has the answer. Rejects with `Unavailable`. */
  read(values: Values<P>, grant: Grant): MaybePromise<Answer | Problem | undefined>;
}

/** The documented part of an operation. Without a scope, its description names the required one. */
export type DescribedOperation = Omit<OperationBase, 'scope'> & {
  readonly scope: Scope | undefined;
};

/** Infers the type of `read`'s values from the parameters, and returns the common type. */
export function operation<const P extends Parameters>(definition: Operation<P>): Operation {
  return { ...definition, read: (values, grant) => definition.read(values as Values<P>, grant) };
}

export interface OperationDeps extends GuardDeps {
  readonly recorder: Recorder;
  readonly sendAnswer: SendAnswer;
  readonly pressure: onRequestHookHandler;
  readonly turns: Turns;
  readonly responses: ResponseCache | undefined;
  readonly findSource: FindSource;
}

/** The route options of all operations. The token is verified before everything that could reveal data. */
export function routeOf(
  { path, scope, parameters, isStrict }: DescribedOperation,
  deps: GuardDeps & Pick<OperationDeps, 'pressure'>,
) {
  return {
    method: ['GET', 'HEAD'],
    url: path.replaceAll(/\{(\w+)\}/g, ':$1'),
    schema: requestSchemas(path, parameters, isStrict),
    onRequest: [startClock, deps.pressure, guardHook(guard(deps, scope))],
  };
}

function startClock(request: FastifyRequest, _: FastifyReply, done: HookHandlerDoneFunction): void {
  request.startedAt = performance.now();
  done();
}

export function answerRecorder({ recorder }: Pick<OperationDeps, 'recorder'>, path: string) {
  return (request: AnsweredRequest, status: number): void =>
    recorder.answered(path, request, status, performance.now() - request.startedAt);
}

/** Reads an operation and sends its answer. Rejects with `Unavailable`. */
export type AnswerOperation<Reply> = (
  request: AnsweredRequest & { readonly grant: Grant | undefined },
  reply: Reply,
  values: Values<Parameters>,
) => MaybePromise<void>;

/** @param refuse sends a problem instead of an answer */
export function operationAnswerer<Reply extends RawReply>(
  { path, scope, shared, mediaType, read }: Operation,
  deps: OperationDeps,
  refuse: (reply: Reply, problem: Problem) => unknown,
): AnswerOperation<Reply> {
  const { sendAnswer, withDeadline, responses, findSource, turns } = deps;
  const answered = answerRecorder(deps, path);

  /** Sends an answer, unless it is older than the request accepts. Compresses it first if the request's coding is missing. */
  function send(request: AnsweredRequest, reply: Reply, prepared: PreparedAnswer): MaybePromise<void> {
    const { body, asOf } = prepared.answer;
    const { headers } = request.raw;
    if (!isYoungEnough(headers, asOf))
      return tooOld(headers, asOf, findSource).then((problem) => void refuse(reply, problem));
    const coded = prepared.hasCodingFor(request.raw) ? undefined : withDeadline(compress(body));
    return whenThere(coded, () => answered(request, sendAnswer(request, reply, prepared)));
  }

  return (request, reply, values) => {
    const grant = grantOf(request);
    const target = request.raw.url ?? '';
    const cached = responses?.get(target, grant.organizationId);
    if (cached) return send(request, reply, cached.prepared);
    const reading = turns.run(request.raw, reply.raw, () => read(values, grant));
    const answer = (found: Answer | Problem | undefined) => {
      if (found === undefined || found instanceof Problem) {
        refuse(reply, found ?? NOT_FOUND);
        return undefined;
      }
      const prepared = new PreparedAnswer(found, mediaType);
      const sending = send(request, reply, prepared);
      // A newer version may have been published during a wait.
      if (sending instanceof Promise || reading instanceof Promise) return sending;
      const owner = shared ? SHARED : grant.organizationId;
      responses?.set({ target, owner, route: path, scope }, found, prepared);
      return sending;
    };
    return reading instanceof Promise ? withDeadline(reading, answer) : answer(reading);
  };
}

/** Adds the route. The contract sets the order: token, then `Accept`, parameters, data. */
export function addOperation(app: FastifyInstance, operation: Operation, deps: OperationDeps): void {
  const answered = answerRecorder(deps, operation.path);
  const answer = operationAnswerer<FastifyReply>(operation, deps, sendProblem);
  app.route({
    ...routeOf(operation, deps),
    preValidation: unacceptableRefuser(operation.mediaType),
    // Runs for problems alone: `sendAnswer` bypasses the framework.
    onSend: (request, { statusCode }, payload, done) => {
      answered(request, statusCode);
      done(null, payload);
    },
    handler: (request, reply) => answer(request, reply, valuesOf(request)),
  });
}

/** Answers that the data of this time is older than the request accepts. */
export async function refuseOld(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  asOf: string | undefined,
  findSource: FindSource,
): Promise<void> {
  sendProblem(reply, await tooOld(headers, asOf, findSource));
}

async function compress(body: EncodedBody): Promise<void> {
  await body.compress?.();
}

function unacceptableRefuser(mediaType: string | undefined): preValidationHookHandler {
  const refusal = mediaType === undefined ? NOT_ACCEPTABLE : notAcceptable(mediaType);
  return ({ headers }, reply, done) => {
    if (accepts(headers, mediaType)) done();
    else sendProblem(reply, refusal);
  };
}

export function valuesOf<P extends Parameters>({ params, query }: FastifyRequest): Values<P> {
  return { ...(params as Values<P>), ...(query as Values<P>) };
}

export function grantOf({ grant }: { grant: Grant | undefined }): Grant {
  if (grant === undefined) throw new Error('a route without a guard has no grant');
  return grant;
}
