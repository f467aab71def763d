/** Sessions of operators: a random id in a cookie, and a row in PostgreSQL. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Database } from '../../../db/connection/connect.ts';
import { hashToken, isWellFormedToken, newToken } from '../../../domain/token.ts';
import { beginSession, endSession, liveSessions, storeSessionUse } from '../db/sessions.ts';

/** Seconds without a request after which a session ends. */
const IDLE = 3600;
/** Seconds after which a session ends in any case. */
const LIFETIME = 43_200;

const COOKIE = 'fleetbook-operator';
const USE_STORED_EVERY_MS = 60_000;

export function openSessions(db: Database, now: () => number) {
  const ago = (seconds: number) => new Date(now() - seconds * 1000);
  const live = (keys: readonly string[]) =>
    liveSessions(db, keys, { beganAfter: ago(LIFETIME), usedAfter: ago(IDLE) });
  return {
    live,
    async begin(request: FastifyRequest, reply: FastifyReply, operatorId: number, tokenId: number | null) {
      const before = keyOf(request);
      if (before !== undefined) await endSession(db, before);
      const id = newToken('session');
      await beginSession(db, { key: hashToken(id), operatorId, tokenId }, ago(0), ago(LIFETIME));
      reply.setCookie(cookieName(request, COOKIE), id, cookieOptions(request, 'strict'));
    },
    async find(request: FastifyRequest) {
      const key = keyOf(request);
      if (key === undefined) return undefined;
      const [found] = await live([key]);
      if (found && now() - found.usedAt.getTime() >= USE_STORED_EVERY_MS)
        await storeSessionUse(db, key, ago(0));
      return found;
    },
    async end(request: FastifyRequest, reply: FastifyReply) {
      const key = keyOf(request);
      if (key !== undefined) await endSession(db, key);
      reply.clearCookie(cookieName(request, COOKIE), cookieOptions(request, 'strict'));
    },
  };
}
export type Sessions = ReturnType<typeof openSessions>;

/** Returns the SHA-256 of the cookie; undefined without a well-formed id, which saves a query. */
function keyOf(request: FastifyRequest): string | undefined {
  const id = request.cookies[cookieName(request, COOKIE)];
  return id !== undefined && isWellFormedToken(id, 'session') ? hashToken(id) : undefined;
}

const isSecure = ({ protocol }: FastifyRequest) => protocol === 'https';

/** Returns the name of a cookie. With TLS, the prefix lets only this host set it, and only over TLS. */
export const cookieName = (request: FastifyRequest, name: string): string =>
  isSecure(request) ? `__Host-${name}` : name;

/** Scripts cannot read the cookie, and other sites cannot send it. `lax` allows links from other sites. */
export const cookieOptions = (request: FastifyRequest, sameSite: 'strict' | 'lax') =>
  ({ httpOnly: true, sameSite, secure: isSecure(request), path: '/' }) as const;
