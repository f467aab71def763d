/**
 * Checks each request to the operators' server: token or session → operator → role of the route. A route is closed unless it
 * declares itself public.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Database } from '../db/connection/connect.ts';
import { isLostConnection } from '../db/connection/errors.ts';
import { includesRole } from '../domain/operator.ts';
import { isApi, isChanging, neededRole, refuse, type SignedIn, wantsPage } from './access.ts';
import { opsTokenCheck, tokenOf } from './ops-token.ts';
import { isOwnSite, isProvenOwnSite } from './own-site.ts';
import type { OpsPart, SignIn } from './part.ts';
import { Refusals } from './refusals.ts';

export interface Guarded {
  /** OPS_TOKEN. */
  readonly token: string | undefined;
  readonly parts: readonly OpsPart[];
  /** Takes the audit log's rows about refused sign-ins. */
  readonly db: Database | undefined;
  /** Warns of refused sign-ins. */
  readonly logger: Pick<Logger, 'warn'> | undefined;
  /** Milliseconds. */
  readonly now: () => number;
}

/** Basic first: a browser asks for a password by the first challenge that it knows. */
const CHALLENGES = ['Basic realm="fleetbook ops", charset="UTF-8"', 'Bearer realm="fleetbook ops"'];
const CLOSED =
  'The operators’ pages are closed, since OPS_TOKEN is not set. Set it, e.g. to what `openssl rand -base64 32` prints, and start again.';
const AWAY =
  'PostgreSQL does not answer, so that no session or token can be checked. OPS_TOKEN as bearer token opens all the same.';

/** Adds the check before every request, and the routes for signing in and out. Call it before any other route is added. */
export async function addGuard(
  app: FastifyInstance,
  { token, parts, db, logger, now }: Guarded,
): Promise<void> {
  const refusals = new Refusals(db, logger, now);
  const isOpsToken = opsTokenCheck(token);
  app.decorateRequest('signedIn', undefined);
  const [addSignIn] = parts.flatMap((part) => part.addSignIn ?? []);
  const signIn = await addSignIn?.(app, { isOpsToken, refusals });

  /** The operator of a request; undefined if it proves none. */
  const operatorBy = async (request: FastifyRequest, reply: FastifyReply): Promise<SignedIn | undefined> => {
    const { authorization } = request.headers;
    if (authorization === undefined) return signIn?.bySession(request, reply);
    const given = tokenOf(authorization);
    if (isOpsToken(given)) return { name: 'OPS_TOKEN', role: 'admin', how: 'token', bySession: false };
    if (signIn) return signIn.byToken(given, request, reply);
    await refusals.add({ how: 'token', address: request.ip, token: given });
    return undefined;
  };

  app.addHook('onRequest', async (request, reply) => {
    const needed = neededRole(request);
    if (needed !== 'public') {
      // No challenge: no password opens it.
      if (token === undefined && signIn === undefined) return refuse(request, reply, 403, CLOSED);
      const wait = request.headers.authorization === undefined ? undefined : refusals.wait(request.ip);
      if (wait) return refuse(request, reply.header('retry-after', String(wait.seconds)), 429, wait.problem);
      try {
        request.signedIn = await operatorBy(request, reply);
      } catch (error) {
        if (isLostConnection(error)) return refuse(request, reply, 503, AWAY);
        throw error;
      }
      if (request.signedIn === undefined) return requireSignIn(request, reply, signIn);
    }
    if (isChanging(request.method) && !mayAct(request))
      return refuse(request, reply, 403, 'Another site may not act here.');
    const { signedIn } = request;
    if (needed === 'public' || (signedIn && includesRole(signedIn.role, needed))) return undefined;
    const has = `${signedIn?.name} has the role ${signedIn?.role}.`;
    return refuse(request, reply, 403, `This needs the role ${needed}; ${has}`);
  });
}

/** A browser sends a session by itself, so a changing request has to prove that a page of this site makes it. */
function mayAct({ headers, signedIn }: FastifyRequest): boolean {
  return signedIn?.bySession ? isProvenOwnSite(headers) : isOwnSite(headers);
}

function requireSignIn(
  request: FastifyRequest,
  reply: FastifyReply,
  signIn: SignIn | undefined,
): FastifyReply {
  const { headers, method, url } = request;
  if (signIn && wantsPage(request) && !isApi(request) && headers.authorization === undefined) {
    const leadsBack = url !== '/' && !isChanging(method);
    return reply.redirect(leadsBack ? `${signIn.page}?next=${encodeURIComponent(url)}` : signIn.page, 303);
  }
  // A challenged browser would open a window for a password, over the page that has a form.
  if (!signIn || headers['sec-fetch-site'] === undefined) reply.header('www-authenticate', CHALLENGES);
  const why = signIn
    ? `Give a token in the Authorization header, or sign in at ${signIn.page}.`
    : 'Give OPS_TOKEN in the Authorization header: as bearer token, or as the password of any user.';
  return refuse(request, reply, 401, why);
}
