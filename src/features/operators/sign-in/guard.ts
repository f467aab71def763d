/**
 * Checks each request to the operators' pages: token or cookie → operator → role of the route. A route is closed unless it
 * declares itself public.
 */
import cookie from '@fastify/cookie';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Store } from '../../../db/connection/connect.ts';
import { isLostConnection } from '../../../db/connection/errors.ts';
import { includesRole } from '../../../domain/operator.ts';
import { findTokens } from '../db/tokens.ts';
import type { OidcSettings } from '../oidc.ts';
import { openResponses } from './open-responses.ts';
import { isOwnSite, isProvenOwnSite } from './own-site.ts';
import { Refusals } from './refusals.ts';
import { isApi, isChanging, neededRole, refuse, type SignedIn, wantsPage } from './roles.ts';
import { addSignInRoutes, LOGIN } from './routes.ts';
import { openSessions } from './sessions.ts';
import { tokenCheck, tokenOf } from './tokens.ts';

/** What lets operators sign in. */
export interface Operators {
  /** In the worker's role: the reader's role sees no operators. */
  readonly store: Pick<Store, 'db'>;
  /** Lets them sign in by OpenID Connect as well. */
  readonly oidc?: OidcSettings | undefined;
  /** Milliseconds; `Date.now` unless given. */
  readonly now?: () => number;
}

export interface Guarded {
  /** OPS_TOKEN. */
  readonly token: string | undefined;
  readonly operators: Operators | undefined;
  /** Warns of refused sign-ins. */
  readonly logger: Pick<Logger, 'warn'> | undefined;
}

/** Basic first: a browser asks for a password by the first challenge that it knows. */
const CHALLENGES = ['Basic realm="fleetbook ops", charset="UTF-8"', 'Bearer realm="fleetbook ops"'];
const CLOSED =
  'The operators\u2019 pages are closed, since OPS_TOKEN is not set. Set it, e.g. to what `openssl rand -base64 32` prints, and start again.';
const AWAY =
  'PostgreSQL does not answer, so that no session or token can be checked. OPS_TOKEN as bearer token opens all the same.';

/** Adds the check before every request, and the routes by which operators sign in and out. Before any other route. */
export async function addGuard(app: FastifyInstance, { token, operators, logger }: Guarded): Promise<void> {
  const { now = Date.now, store, oidc } = operators ?? {};
  const db = store?.db;
  const refusals = new Refusals(db, logger, now);
  const check = tokenCheck(token, db, refusals);
  const sessions = operators && openSessions(operators.store.db, now);
  const open = openResponses(async (keys) => {
    const [tokens, live] = await Promise.all([db ? findTokens(db, keys) : [], sessions?.live(keys) ?? []]);
    return new Set([...tokens.filter(({ state }) => state === 'good'), ...live].map(({ key }) => key));
  });
  app.addHook('onClose', async () => open[Symbol.dispose]());
  app.decorateRequest('signedIn', undefined);
  await app.register(cookie);

  /** The operator of a request; undefined if it proves none. Its response ends with the token or session. */
  const operatorBy = async (request: FastifyRequest, reply: FastifyReply): Promise<SignedIn | undefined> => {
    const { authorization } = request.headers;
    if (authorization !== undefined) {
      const found = await check(tokenOf(authorization), 'token', request.ip);
      if (found === 'OPS_TOKEN') return { name: found, role: 'admin', how: 'token', bySession: false };
      if (found) open.add(found.key, reply.raw);
      return (
        found && { name: found.name, role: found.role, how: 'token', tokenId: found.id, bySession: false }
      );
    }
    const session = await sessions?.find(request);
    if (session === undefined) return undefined;
    const { key, name, role, tokenId } = session;
    open.add(key, reply.raw);
    return {
      name,
      role,
      ...(tokenId === null ? { how: 'oidc' } : { how: 'console', tokenId }),
      bySession: true,
    };
  };

  app.addHook('onRequest', async (request, reply) => {
    const needed = neededRole(request);
    if (needed !== 'public') {
      // No challenge: no password opens it.
      if (token === undefined && sessions === undefined) return refuse(request, reply, 403, CLOSED);
      const wait = request.headers.authorization === undefined ? undefined : refusals.wait(request.ip);
      if (wait) return refuse(request, reply.header('retry-after', String(wait.seconds)), 429, wait.problem);
      try {
        request.signedIn = await operatorBy(request, reply);
      } catch (error) {
        if (isLostConnection(error)) return refuse(request, reply, 503, AWAY);
        throw error;
      }
      if (request.signedIn === undefined) return askToSignIn(request, reply, sessions !== undefined);
    }
    if (isChanging(request.method) && !mayAct(request))
      return refuse(request, reply, 403, 'Another site may not act here.');
    const { signedIn } = request;
    if (needed === 'public' || (signedIn && includesRole(signedIn.role, needed))) return undefined;
    const has = `${signedIn?.name} has the role ${signedIn?.role}.`;
    return refuse(request, reply, 403, `This needs the role ${needed}; ${has}`);
  });

  if (sessions && db) {
    // `serve` has no operators, and must not load the libraries of OpenID Connect before its first answer.
    const link =
      oidc && (await import('./oidc-routes.ts')).addOidcRoutes(app, { oidc, sessions, db, refusals, now });
    addSignInRoutes(app, { sessions, db, check, refusals, oidc: link });
  }
}

/** A browser sends a session by itself, so a changing request has to prove that a page of this site makes it. */
function mayAct({ headers, signedIn }: FastifyRequest): boolean {
  return signedIn?.bySession ? isProvenOwnSite(headers) : isOwnSite(headers);
}

function askToSignIn(request: FastifyRequest, reply: FastifyReply, canSignIn: boolean): FastifyReply {
  const { headers, method, url } = request;
  if (canSignIn && wantsPage(request) && !isApi(request) && headers.authorization === undefined) {
    const leadsBack = url !== '/' && !isChanging(method);
    return reply.redirect(leadsBack ? `${LOGIN}?next=${encodeURIComponent(url)}` : LOGIN, 303);
  }
  // A challenged browser would open a window for a password, over the page that has a form.
  if (!canSignIn || headers['sec-fetch-site'] === undefined) reply.header('www-authenticate', CHALLENGES);
  const why = canSignIn
    ? `Give a token in the Authorization header, or sign in at ${LOGIN}.`
    : 'Give OPS_TOKEN in the Authorization header: as bearer token, or as the password of any user.';
  return refuse(request, reply, 401, why);
}
