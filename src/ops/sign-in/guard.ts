/**
 * Checks each request to the operators' pages: token or cookie → operator → role. A route is closed unless its config says
 * that it is public.
 */
import cookie from '@fastify/cookie';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Store } from '../../db/connect.ts';
import { isLostConnection } from '../../db/errors.ts';
import { findTokens } from '../../db/operator-tokens.ts';
import type { OidcSettings } from '../../domain/oidc.ts';
import { includesRole } from '../../domain/operator.ts';
import { AddressFailures } from './address-failures.ts';
import { OF_OPS_TOKEN, tokenCheck, tokenOf } from './credentials.ts';
import { OpenResponses } from './open-responses.ts';
import { isOwnSite, isProvenOwnSite } from './own-site.ts';
import { refusalLog } from './refusals.ts';
import { isApi, isChanging, neededRole, refuse, type SignedIn, wantsPage } from './roles.ts';
import { addSignInRoutes, LOGIN } from './routes.ts';
import { type SessionLimits, Sessions } from './sessions.ts';

/** What lets operators sign in. */
export interface Operators extends SessionLimits {
  /** In the worker's role: the reader's role sees no operators. */
  readonly store: Pick<Store, 'db'>;
  /** Lets them sign in by OpenID Connect as well. */
  readonly oidc?: OidcSettings | undefined;
  /** Milliseconds; `Date.now` unless given. */
  readonly now?: () => number;
}

/** Basic first: a browser asks for a password by the first challenge that it knows. */
const CHALLENGES = ['Basic realm="fleetbook ops", charset="UTF-8"', 'Bearer realm="fleetbook ops"'];

const CLOSED =
  'The operators\u2019 pages are closed, since OPS_TOKEN is not set. Set it, e.g. to what `openssl rand -base64 32` prints, and start again.';
const AWAY =
  'PostgreSQL does not answer, so that no session or token can be checked. OPS_TOKEN as bearer token opens all the same.';

export interface Guarded {
  readonly token: string | undefined;
  readonly operators: Operators | undefined;
  /** Warns of refused sign-ins. */
  readonly logger: Pick<Logger, 'warn'> | undefined;
}

/** Adds the check before every request, and the routes by which operators sign in and out. Before any other route. */
export async function addGuard(app: FastifyInstance, { token, operators, logger }: Guarded): Promise<void> {
  const { now = Date.now, store, oidc } = operators ?? {};
  const db = store?.db;
  const failures = new AddressFailures(now);
  const record = refusalLog(db, logger, now);
  const check = tokenCheck({ opsToken: token, db, failures, record });
  const sessions = operators && new Sessions({ ...operators, db: operators.store.db, now });
  const open = new OpenResponses(async (keys) => {
    if (!db || !sessions) return new Set(keys);
    const [tokens, live] = await Promise.all([findTokens(db, keys), sessions.live(keys)]);
    return new Set([...tokens.filter(({ state }) => state === 'good'), ...live].map(({ key }) => key));
  });
  app.decorateRequest('signedIn', undefined);
  await app.register(cookie);
  app.addHook('onClose', async () => open[Symbol.dispose]());

  const byHeader = async (request: FastifyRequest, reply: FastifyReply, authorization: string) => {
    const checked = await check(request, tokenOf(authorization), 'token');
    if (checked.outcome === 'OPS_TOKEN') return { ...OF_OPS_TOKEN, bySession: false };
    if (checked.outcome === 'later') return checked;
    if (checked.outcome === 'refused') return undefined;
    const { key, id: tokenId, name, role } = checked.token;
    open.add(key, reply.raw);
    return { name, role, how: 'token', tokenId, bySession: false } as const;
  };
  const bySession = async (request: FastifyRequest, reply: FastifyReply): Promise<SignedIn | undefined> => {
    const found = await sessions?.find(request);
    if (found === undefined) return undefined;
    const { key, name, role, tokenId } = found;
    open.add(key, reply.raw);
    if (tokenId === null) return { name, role, how: 'oidc', bySession: true };
    return { name, role, how: 'console', tokenId, bySession: true };
  };

  app.addHook('onRequest', async (request, reply) => {
    const needed = neededRole(request);
    if (needed !== 'public') {
      // No challenge: no password would do.
      if (token === undefined && sessions === undefined) return refuse(request, reply, 403, CLOSED);
      const { authorization } = request.headers;
      try {
        const found = await (authorization === undefined
          ? bySession(request, reply)
          : byHeader(request, reply, authorization));
        if (found && 'problem' in found)
          return refuse(request, reply.header('retry-after', String(found.seconds)), 429, found.problem);
        request.signedIn = found;
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
    return refuse(
      request,
      reply,
      403,
      `This needs the role ${needed}; ${signedIn?.name} has the role ${signedIn?.role}.`,
    );
  });

  if (operators && sessions && db) {
    // Large, and of no use to most.
    const link =
      oidc &&
      (await import('./oidc-routes.ts')).addOidcRoutes(app, { oidc, sessions, db, failures, record, now });
    addSignInRoutes(app, { sessions, db, check, oidc: link });
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
  // A challenged browser would ask for a password in a window of its own, over the page that has a form.
  if (!canSignIn || headers['sec-fetch-site'] === undefined) reply.header('www-authenticate', CHALLENGES);
  const why = canSignIn
    ? `Give a token in the Authorization header, or sign in at ${LOGIN}.`
    : 'Give OPS_TOKEN in the Authorization header: as bearer token, or as the password of any user.';
  return refuse(request, reply, 401, why);
}
