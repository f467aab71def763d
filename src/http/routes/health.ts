import type { FastifyReply, FastifyRequest } from 'fastify';
import { Problem, sendProblem } from '../protocol/problem.ts';

export interface Readiness {
  readonly ready: boolean;
  /** By name: `ok`, or the problem. It is public. */
  readonly checks: Readonly<Record<string, string>>;
}

/** Monitors request these every few seconds. They are always answered. */
export const HEALTH_PATHS: readonly string[] = ['/healthz', '/readyz'];

const ALIVE = Buffer.from('{"status":"ok"}');

export type PageHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;
export type AddPage = (path: string, handler: PageHandler) => void;

/** @param failed receives the error of a failed readiness check */
export function addHealth(
  readiness: () => Promise<Readiness>,
  open: AddPage,
  failed: (error: unknown, request: FastifyRequest) => void,
): void {
  open('/healthz', async (_, reply) => sendStatus(reply, ALIVE));

  open('/readyz', async (request, reply) => {
    const { ready, checks } = await readiness().catch((error: unknown): Readiness => {
      failed(error, request);
      return { ready: false, checks: { readiness: 'could not be found out' } };
    });
    if (ready) return sendStatus(reply, Buffer.from(JSON.stringify({ status: 'ready', checks })));
    return sendProblem(reply, notReady(checks));
  });
}

function sendStatus(reply: FastifyReply, body: Buffer): FastifyReply {
  return reply.header('content-type', 'application/json').header('cache-control', 'no-store').send(body);
}

export function notReady(checks: Readiness['checks']): Problem {
  const missing = Object.keys(checks).filter((name) => checks[name] !== 'ok');
  return new Problem(503, {
    type: 'urn:fleetbook:problem:not-ready',
    title: 'Not ready',
    detail: `Not ready to answer: ${missing.join(', ') || 'starting'}.`,
    headers: { 'retry-after': '1' },
    members: { checks },
  });
}
