/** An operation that answers from the readers, declared once: what routes it also documents it. */
import type { FastifyInstance } from 'fastify';
import type { Grant, TokenVerifier } from '../domain/grant.ts';
import type { Scope } from '../domain/token.ts';
import type { Answer } from '../snapshot/answer.ts';
import { guard } from './auth.ts';
import { within } from './deadline.ts';
import { acceptsJson, allowedCodings } from './negotiate.ts';
import { type Found, type Parameters, parameterReader, type Values } from './parameters.ts';
import { NOT_ACCEPTABLE, NOT_FOUND, Problem, sendProblem } from './problem.ts';
import type { Recorder } from './record.ts';
import type { Schema } from './schemas.ts';
import { sendAnswer } from './send.ts';

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
  /** Undefined where nothing is there. @throws Unavailable */
  read(values: Values<P>, grant: Grant): Promise<Answer | undefined>;
}

/** Ties the type of `read`'s values to the parameters, then forgets it, so that operations make one list. */
export function operation<const P extends Parameters>(definition: Operation<P>): Operation {
  return { ...definition, read: (values, grant) => definition.read(values as Values<P>, grant) };
}

export interface OperationDeps {
  readonly tokens: TokenVerifier;
  readonly recorder: Recorder;
  /** Milliseconds in which a reader has to answer. */
  readonly answerTimeoutMs: number;
}

/** Routes GET and HEAD. The order is the contract's: who asks, then what is accepted, what is asked, what is there. */
export function addOperation(
  app: FastifyInstance,
  { path, scope, parameters, read }: Operation,
  deps: OperationDeps,
) {
  const readParameters = parameterReader(parameters);
  app.route({
    method: ['GET', 'HEAD'],
    url: routePattern(path),
    onRequest: guard(deps.tokens, scope),
    onResponse: (request, reply, done) => {
      deps.recorder.answered(path, request, reply);
      done();
    },
    handler: async (request, reply) => {
      if (!accepts(request.headers)) return sendProblem(reply, NOT_ACCEPTABLE);
      const values = readParameters(request.params as Found, request.query as Found);
      if (values instanceof Problem) return sendProblem(reply, values);
      const answer = await within(deps.answerTimeoutMs, read(values, grantOf(request)));
      return answer === undefined ? sendProblem(reply, NOT_FOUND) : sendAnswer(request, reply, answer);
    },
  });
}

/** `/v1/machines/{id}` → `/v1/machines/:id`. */
function routePattern(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}

/**
 * False when `Accept` excludes JSON, or `Accept-Encoding` every coding there ever is here (RFC 9110, 12.5.3: a
 * client that forbids identity and takes nothing else has said that no answer would do).
 */
export function accepts(headers: {
  accept?: string | undefined;
  'accept-encoding'?: string | string[] | undefined;
}) {
  const codings = headers['accept-encoding'];
  return acceptsJson(headers.accept) && (codings === undefined || allowedCodings(String(codings)).length > 0);
}

function grantOf({ grant }: { grant: Grant | undefined }): Grant {
  if (grant === undefined) throw new Error('a route without a guard has no grant');
  return grant;
}
