/**
 * Checks each request to the operators' server: token or session, operator, role of the route. Every route without
 * `access: 'public'` is closed.
 */

import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isLostConnection } from '../db/connection/errors.ts';
import { steadyNow } from '../domain/clock.ts';
import { includesRole } from '../domain/operator.ts';
import { isApi, isChanging, neededRole, refuse, type SignedIn, wantsPage } from './access.ts';
import type { OpsDependencies, SignIn } from './feature-routes.ts';
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

/** Returns the check of OPS_TOKEN. @throws Error for an empty OPS_TOKEN, which every request would match */
function opsTokenCheck(opsToken: string | undefined): (token: string) => boolean {
  if (opsToken === '') throw new Error('OPS_TOKEN is empty; set it to a random text, or unset it');
  const expected = opsToken === undefined ? undefined : digest(opsToken);
  return (token) => expected !== undefined && timingSafeEqual(digest(token), expected);
}

/** Returns the token of an Authorization header: of Bearer, or the password of Basic. Empty for other schemes. */
function tokenOf(authorization: string): string {
  const [, scheme = '', value = ''] = /^(\S+) +([^ ].*)?$/.exec(authorization) ?? [];
  if (scheme.toLowerCase() === 'bearer') return value;
  if (scheme.toLowerCase() !== 'basic') return '';
  const text = Buffer.from(value, 'base64').toString();
  return text.includes(':') ? text.slice(text.indexOf(':') + 1) : '';
}

/** Digests have one length, which timingSafeEqual needs. */
const digest = (token: string): Buffer => createHash('sha256').update(token).digest();

/** Returns false for a request of another page, which the browser sends with credentials. Programs send no such headers. */
function isOwnSite(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin' || site === 'none';
  if (headers.origin === undefined) return true;
  const origin = URL.parse(headers.origin);
  // Parsing removes a default port from both.
  return origin !== null && origin.host === URL.parse(`${origin.protocol}//${headers.host}`)?.host;
}

/** Returns true if the browser states that a page of this site makes the request. */
function isProvenOwnSite(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  return headers.origin !== undefined && isOwnSite(headers);
}
