/** How a ready-made body becomes a response of Fastify's. Nothing is compressed or hashed here. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { EncodedBody, Tier } from '../snapshot/document/answer.ts';
import { codingFor, knownTag, type PreparedAnswer } from './prepared-answer.ts';
import { cutWhenIdle, type Drain } from './protocol/connections.ts';
import { entityTag } from './protocol/negotiate.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Which tier answered; undefined until one did. */
    tier: Tier | undefined;
  }
}

export interface SenderOptions {
  /** Milliseconds that a client may take no byte of an answer before its connection is cut. */
  readonly idleTimeoutMs: number;
  readonly tellToClose: Drain['tellToClose'];
}

/**
 * Sends what a reader answered to an authenticated request, past Fastify's way of sending.
 * @param also header fields to be sent with it
 * @returns the status
 */
export type SendAnswer = (
  request: FastifyRequest,
  reply: FastifyReply,
  answer: PreparedAnswer,
  also?: ReturnType<FastifyReply['getHeaders']>,
) => 200 | 304;

export function answerSender({ idleTimeoutMs, tellToClose }: SenderOptions): SendAnswer {
  return (request, reply, prepared, also) => {
    request.tier = prepared.answer.tier;
    const { raw } = reply;
    tellToClose(raw);
    if (also)
      for (const [name, value] of Object.entries(also)) if (value !== undefined) raw.setHeader(name, value);
    const status = prepared.write(request.raw, raw, request.id);
    // Not before: an answer that cannot be written is an error like any other.
    reply.hijack();
    if (raw.writableLength > 0) cutWhenIdle(request.raw, idleTimeoutMs);
    return status;
  };
}

/** Sends a body that is the same for everybody, so that shared caches may keep it as long as they ask each time. */
export function sendPublic(
  request: FastifyRequest,
  reply: FastifyReply,
  body: EncodedBody,
  type = 'application/json',
): FastifyReply {
  const coding = codingFor(request.raw, body);
  const tag = entityTag(body.hash, coding);
  const matching = knownTag(request.raw, body, tag);
  reply.header('cache-control', 'no-cache').header('vary', 'Accept-Encoding');
  if (matching !== undefined) return reply.code(304).header('etag', matching).send();
  reply.code(200).header('etag', tag).header('content-type', type);
  if (coding !== 'identity') reply.header('content-encoding', coding);
  return reply.send(body[coding] ?? body.identity);
}
