/**
 * Checks each request to the operators' server: token or session, operator, role of the route. Every route without
 * `access: 'public'` is closed.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isLostConnection } from '../db/connection/errors.ts';
import { includesRole } from '../domain/operator.ts';
import { steadyNow } from '../domain/steady-now.ts';
import { isApi, isChanging, neededRole, refuse, type SignedIn, wantsPage } from './access.ts';
import { opsTokenCheck, tokenOf } from './ops-token.ts';
import { isOwnSite, isProvenOwnSite } from './own-site.ts';
import type { OpsDependencies, SignIn } from './part.ts';
import { Refusals } from './refusals.ts';

/** Basic is first: a browser uses the first challenge that it knows to request a password. */
const CHALLENGES = ['Basic realm="fleetbook ops", charset="UTF-8"', 'Bearer realm="fleetbook ops"'];
const CLOSED =
  'The operators’ pages are closed, since OPS_TOKEN is not set. Set it, e.g. to the output of `openssl rand -base64 32`, and restart.';
const AWAY =
  'PostgreSQL does not answer, so no session or token can be checked. OPS_TOKEN as bearer token still works.';

/**
 * Adds the check of each request, and the routes for signing in and out. Call it before any other route is added.
 * @param admit receives each request of an operator
 */
export async function addGuard(
  app: FastifyInstance,
  { token, parts = [], db, logger, now = steadyNow }: OpsDependencies,
  admit: (request: FastifyRequest) => void,
): Promise<void> {
  const refusals = new Refusals(db, logger, now);
  const isOpsToken = opsTokenCheck(token);
  app.decorateRequest('signedIn', undefined);
  const [addSignIn] = parts.flatMap((part) => part.addSignIn ?? []);
  const signIn = await addSignIn?.(app, { isOpsToken, refusals });

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
      // No password opens a closed server, so the answer has no challenge.
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
      admit(request);
    }
    if (isChanging(request.method) && !mayAct(request))
      return refuse(request, reply, 403, 'A page of another site may not change anything here.');
    const { signedIn } = request;
    if (needed === 'public' || (signedIn && includesRole(signedIn.role, needed))) return undefined;
    const has = `${signedIn?.name} has the role ${signedIn?.role}.`;
    return refuse(request, reply, 403, `This needs the role ${needed}; ${has}`);
  });
}

/** A browser sends a session by itself, so a changing request must prove that a page of this site makes it. */
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
  // A challenge would open the browser's password window over the page with the form.
  if (!signIn || headers['sec-fetch-site'] === undefined) reply.header('www-authenticate', CHALLENGES);
  const error = signIn
    ? `Give a token in the Authorization header, or sign in at ${signIn.page}.`
    : 'Give OPS_TOKEN in the Authorization header: as bearer token, or as the password of any user.';
  return refuse(request, reply, 401, error);
}
