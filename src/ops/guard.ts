/** Lets nobody in who may not: before every route of the operators' pages. */
import cookie from '@fastify/cookie';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Store } from '../db/connect.ts';
import { isLostConnection } from '../db/errors.ts';
import type { OidcSettings } from '../domain/oidc.ts';
import { includesRole } from '../domain/operator.ts';
import type { passwordMatches } from '../domain/password.ts';
import { accessCheck, CHALLENGES, isOwnSite, isProvenOwnSite } from './access.ts';
import { AddressFailures } from './address-failures.ts';
import { Attempts } from './attempts.ts';
import { OpenResponses } from './open-responses.ts';
import { refusalLog } from './refusals.ts';
import { isApi, isChanging, neededRole, refuse, type SignedIn, wantsPage } from './roles.ts';
import { type SessionLimits, Sessions, sessionKeys } from './session.ts';
import { addSessionRoutes, LOGIN } from './session-routes.ts';
import { openSignIn } from './sign-in.ts';
import { type MustWait, openTokenGate } from './token-gate.ts';

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
  'The operators\u2019 pages are closed, since OPS_TOKEN is not set. Set it, e.g. to what `openssl rand -base64 32` prints, and start again.';

const AWAY =
  'PostgreSQL does not answer, so that no session can be checked. OPS_TOKEN as bearer token opens all the same.';

export interface Guarded {
  readonly token: string | undefined;
  readonly accounts: OperatorAccounts | undefined;
  /** Warns of refused sign-ins. */
  readonly logger: Pick<Logger, 'warn'> | undefined;
}

/** Adds the check before every request, and the routes by which operators sign in and out. Before any other route. */
export async function addGuard(app: FastifyInstance, { token, accounts, logger }: Guarded): Promise<void> {
  const now = accounts?.now ?? Date.now;
  const isToken = token === undefined ? undefined : accessCheck(token);
  const failures = new AddressFailures(now);
  const record = refusalLog(accounts?.store.db, logger, now);
  const byHeader = openTokenGate(isToken, failures, record);
  const keys = accounts && sessionKeys(accounts.sessionKey, token);
  const sessions = accounts && keys ? new Sessions({ ...accounts, keys, now }) : undefined;
  app.decorateRequest('signedIn', undefined);
  if (keys) await app.register(cookie, { secret: keys.secret });
  const open = sessions && new OpenResponses((keys) => sessions.liveKeys(keys));
  app.addHook('onClose', async () => open?.[Symbol.dispose]());
  const signedInBy = async (
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<SignedIn | MustWait | undefined> => {
    const { authorization } = request.headers;
    if (authorization !== undefined) return byHeader(request, authorization);
    const found = await sessions?.find(request);
    if (found) open?.add(found.key, reply.raw);
    return found?.signedIn;
  };

  app.addHook('onRequest', async (request, reply) => {
    const needed = neededRole(request);
    if (needed !== 'public') {
      // No challenge: there is no password that would do.
      if (isToken === undefined && sessions === undefined) return refuse(request, reply, 403, CLOSED);
      try {
        const found = await signedInBy(request, reply);
        if (found && 'problem' in found)
          return refuse(request, reply.header('retry-after', String(found.seconds)), 429, found.problem);
        request.signedIn = found;
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
    const { store, oidc } = accounts;
    const shared = { sessions, store, failures, record, now };
    // Large, and of no use to most.
    const started = oidc && (await import('./oidc/routes.ts')).addOidcRoutes(app, { oidc, ...shared });
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
        failures,
        record,
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
  if (canSignIn && wantsPage(request) && !isApi(request) && headers.authorization === undefined) {
    const leadsBack = url !== '/' && !isChanging(method);
    return reply.redirect(leadsBack ? `${LOGIN}?next=${encodeURIComponent(url)}` : LOGIN, 303);
  }
  // A browser that is challenged asks for a password by a window of its own, over the page that has a form for it.
  if (!canSignIn || headers['sec-fetch-site'] === undefined) reply.header('www-authenticate', CHALLENGES);
  const by = 'OPS_TOKEN is asked for: as bearer token, or as the password of any user';
  return refuse(request, reply, 401, canSignIn ? `${by}; or sign in at ${LOGIN}.` : `${by}.`);
}
