/** How a ready-made body becomes a response. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Answer, EncodedBody, Tier } from '../snapshot/answer.ts';
import { allowedCodings, type Coding, chooseCoding, entityTag, matchingTag } from './negotiate.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Which tier answered; undefined until one did. */
    tier: Tier | undefined;
  }
}

/** The header fields of an answer to an authenticated request, whether it is 200 or 304. */
export function answerHeaders({ tier, asOf }: Answer): Record<string, string> {
  return {
    'cache-control': 'private, no-cache',
    vary: 'Authorization, Accept-Encoding',
    'fleetbook-tier': tier,
    ...(asOf !== undefined && { 'fleetbook-as-of': asOf }),
  };
}

/** The header fields of a body in this coding. */
export function contentHeaders(tag: string, coding: Coding): Record<string, string> {
  return {
    etag: tag,
    'content-type': 'application/json',
    ...(coding !== 'identity' && { 'content-encoding': coding }),
  };
}

/** Sends what a reader answered to an authenticated request. */
export function sendAnswer(request: FastifyRequest, reply: FastifyReply, answer: Answer): FastifyReply {
  request.tier = answer.tier;
  return sendBody(request, reply.headers(answerHeaders(answer)), answer.body);
}

/** Sends a body that is the same for everybody, so that shared caches may keep it as long as they ask each time. */
export function sendPublic(request: FastifyRequest, reply: FastifyReply, body: EncodedBody): FastifyReply {
  return sendBody(request, reply.header('cache-control', 'no-cache').header('vary', 'Accept-Encoding'), body);
}

/** In the coding that the client likes best, or 304 when it has the content. Nothing is compressed here. */
function sendBody(request: FastifyRequest, reply: FastifyReply, body: EncodedBody): FastifyReply {
  const { headers } = request.raw;
  const coding = chooseCoding(allowedCodings(headers['accept-encoding'] as string | undefined), body);
  const tag = entityTag(body.hash, coding);
  const condition = headers['if-none-match'];
  const matching = condition === undefined ? undefined : matchingTag(condition, body.hash, tag);
  if (matching !== undefined) return reply.code(304).header('etag', matching).send();
  return reply
    .code(200)
    .headers(contentHeaders(tag, coding))
    .send(body[coding] ?? body.identity);
}
