/** Lets nobody in who may not: before every route of the operators' pages. */
import cookie from '@fastify/cookie';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Store } from '../db/connect.ts';
import { isLostConnection } from '../db/errors.ts';
import type { OidcSettings } from '../domain/oidc.ts';
import { includesRole } from '../domain/operator.ts';
import type { passwordMatches } from '../domain/password.ts';
import { accessCheck, CHALLENGES, isOwnSite, isProvenOwnSite } from './access.ts';
import { Attempts } from './attempts.ts';
import { refusalLog } from './refusals.ts';
import { isApi, isChanging, neededRole, refuse, type SignedIn, wantsPage } from './roles.ts';
import { type SessionLimits, Sessions, sessionKeys } from './session.ts';
import { addSessionRoutes, LOGIN } from './session-routes.ts';
import { openSignIn } from './sign-in.ts';

/** What lets operators sign in by name and password. */
export interface OperatorAccounts extends SessionLimits {
  /** In the worker's role: the reader's sees no accounts. */
  readonly store: Pick<Store, 'sql' | 'db'>;
  /** Signs sessions, the same for all processes; OPS_TOKEN does where it is undefined. */
  readonly sessionKey?: string | undefined;
  /** Lets them sign in by OpenID Connect as well. */
  readonly oidc?: OidcSettings | undefined;
  /** Milliseconds; `Date.now` unless given. */
  readonly now?: () => number;
  readonly matches?: typeof passwordMatches;
}

const CLOSED =
  'The operators\u2019 pages are closed, since OPS_TOKEN is not set. Set it, e.g. to what `openssl rand -base64 18` prints, and start again.';

const AWAY =
  'PostgreSQL does not answer, so that no session can be checked. OPS_TOKEN as bearer token opens all the same.';

const OPEN_TO_TOKEN: Omit<SignedIn, 'bySession'> = { name: 'OPS_TOKEN', role: 'admin', how: 'token' };

/** Adds the check before every request, and the routes by which operators sign in and out. Before any other route. */
export async function addGuard(
  app: FastifyInstance,
  token: string | undefined,
  accounts: OperatorAccounts | undefined,
): Promise<void> {
  const isToken = token === undefined ? undefined : accessCheck(token);
  const keys = accounts && sessionKeys(accounts.sessionKey, token);
  const sessions =
    accounts && keys
      ? new Sessions({ ...accounts, sql: accounts.store.sql, keys, now: accounts.now ?? Date.now })
      : undefined;
  app.decorateRequest('signedIn', undefined);
  if (keys) await app.register(cookie, { secret: keys.secret });
  const whoAsks = async (request: FastifyRequest, reply: FastifyReply): Promise<SignedIn | undefined> => {
    const { authorization } = request.headers;
    if (authorization !== undefined)
      return isToken?.(authorization) ? { ...OPEN_TO_TOKEN, bySession: false } : undefined;
    return sessions?.find(request, reply);
  };

  app.addHook('onRequest', async (request, reply) => {
    const needed = neededRole(request);
    if (needed !== 'public') {
      // No challenge: there is no password that would do.
      if (isToken === undefined && sessions === undefined) return refuse(request, reply, 403, CLOSED);
      try {
        request.signedIn = await whoAsks(request, reply);
      } catch (error) {
        if (isLostConnection(error)) return refuse(request, reply, 503, AWAY);
        throw error;
      }
      if (request.signedIn === undefined) return askToSignIn(request, reply, sessions !== undefined);
    }
    if (isChanging(request.method) && !mayAct(request, sessions))
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

  if (sessions && accounts) {
    const { store, oidc, now = Date.now } = accounts;
    // Large, and of no use to most.
    const started =
      oidc && (await import('./oidc/routes.ts')).addOidcRoutes(app, { oidc, sessions, store, now });
    addSessionRoutes(app, {
      sessions,
      db: store.db,
      now,
      oidc: started,
      hasToken: isToken !== undefined,
      signIn: openSignIn({
        store,
        isToken: (password) => isToken?.(`Bearer ${password}`) ?? false,
        attempts: new Attempts(now),
        record: refusalLog(store.db, now),
        ...(accounts.matches && { matches: accounts.matches }),
      }),
    });
  }
}

/** A session is sent by the browser on its own accord: that its own page asks has to be proven. */
function mayAct(request: FastifyRequest, sessions: Sessions | undefined): boolean {
  if (!isOwnSite(request.headers)) return false;
  if (!request.signedIn?.bySession) return true;
  return isProvenOwnSite(request.headers) || (sessions?.hasCsrfToken(request) ?? false);
}

function askToSignIn(request: FastifyRequest, reply: FastifyReply, canSignIn: boolean): FastifyReply {
  const { headers, method, url } = request;
  if (
    canSignIn &&
    wantsPage(request) &&
    !isChanging(method) &&
    !isApi(request) &&
    headers.authorization === undefined
  )
    return reply.redirect(url === '/' ? LOGIN : `${LOGIN}?next=${encodeURIComponent(url)}`, 303);
  // A browser that is challenged asks for a password by a window of its own, over the page that has a form for it.
  if (!canSignIn || headers['sec-fetch-site'] === undefined) reply.header('www-authenticate', CHALLENGES);
  const by = 'OPS_TOKEN is asked for: as bearer token, or as the password of any user';
  return refuse(request, reply, 401, canSignIn ? `${by}; or sign in at ${LOGIN}.` : `${by}.`);
}
