import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { EncodedBody, Tier } from '../snapshot/document/answer.ts';
import { codingFor, type PreparedAnswer, unmodifiedTag } from './hot/prepared-answer.ts';
import { cutWhenIdle, type Drain } from './protocol/drain.ts';
import { entityTag } from './protocol/negotiate.ts';
import type { RecordedRequest } from './record-requests.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The tier that answered; undefined before an answer. */
    tier: Tier | undefined;
  }
}

/** The parts of a request that its answer needs. Fastify's request has them, and so has one before its routes. */
export interface AnsweredRequest extends RecordedRequest {
  readonly raw: IncomingMessage;
  /** When the request was routed, by `performance.now()`. */
  readonly startedAt: number;
  readonly rateFields: readonly string[] | undefined;
  tier: Tier | undefined;
}

export interface RawReply {
  readonly raw: ServerResponse;
  hijack(): unknown;
}

/** Sends a reader's answer without Fastify. Returns the status. */
export type SendAnswer = (request: AnsweredRequest, reply: RawReply, answer: PreparedAnswer) => 200 | 304;

export function answerSender(idleTimeoutMs: number, closeLater: Drain['closeLater']): SendAnswer {
  return (request, reply, prepared) => {
    request.tier = prepared.answer.tier;
    const { raw } = reply;
    closeLater(raw);
    const status = prepared.write(request.raw, raw, request.id, request.rateFields);
    // After the write: Fastify handles an error of it.
    reply.hijack();
    if (raw.writableLength > 0) cutWhenIdle(request.raw, idleTimeoutMs);
    return status;
  };
}

export function sendPublic(
  request: FastifyRequest,
  reply: FastifyReply,
  body: EncodedBody,
  type = 'application/json',
): FastifyReply {
  const coding = codingFor(request.raw, body);
  const tag = entityTag(body.hash, coding);
  const matching = unmodifiedTag(request.raw, body, tag);
  reply.header('cache-control', 'no-cache').header('vary', 'Accept-Encoding');
  if (matching !== undefined) return reply.code(304).header('etag', matching).send();
  reply.code(200).header('etag', tag).header('content-type', type);
  if (coding !== 'identity') reply.header('content-encoding', coding);
  return reply.send(body[coding] ?? body.identity);
}
