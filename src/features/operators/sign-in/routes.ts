/** The routes for signing in with a form, for signing out, and `/api/session` with the signed-in operator. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { audit } from '../../../db/audit.ts';
import type { Database } from '../../../db/connection/connect.ts';
import { isLostConnection } from '../../../db/connection/errors.ts';
import { hashToken, isWellFormedToken } from '../../../domain/token.ts';
import { deciderOf, operatorOf } from '../../../ops/access.ts';
import type { Gate } from '../../../ops/feature-routes.ts';
import type { Refusals } from '../../../ops/refusals.ts';
import { endOperatorSessions } from '../db/operators.ts';
import { type FoundToken, findTokens, storeTokenUse } from '../db/tokens.ts';
import { type LoginPage, loginPage, ownPath } from './pages.ts';
import type { Sessions } from './sessions.ts';

export const LOGIN = '/login';
const BODY_LIMIT = 16_384;

export interface SignInRoutes extends Gate {
  readonly sessions: Sessions;
  readonly db: Database;
  readonly check: CheckToken;
  readonly oidc: LoginPage['oidc'];
}

const NO_SESSION =
  'OPS_TOKEN is for programs and opens no session. Create an operator with a token: fleetbook operator create <name> --role admin';
const WRONG =
  'The token is wrong, expired or revoked. Operators’ tokens begin with fbo_; for a new one: fleetbook operator token create <name>';
const AWAY = 'PostgreSQL does not answer; try again in a moment.';

export function addSignInRoutes(
  app: FastifyInstance,
  { sessions, db, check, isOpsToken, refusals, oidc }: SignInRoutes,
): void {
  app.addContentTypeParser<string>(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: BODY_LIMIT },
    (_, body, done) => done(null, Object.fromEntries(new URLSearchParams(body))),
  );

  const enter = async (request: FastifyRequest, reply: FastifyReply): Promise<string | undefined> => {
    const wait = refusals.wait(request.ip);
    if (wait) {
      reply.code(429).header('retry-after', String(wait.seconds));
      return wait.problem;
    }
    const token = textOf(request.body, 'token').trim();
    const isOps = isOpsToken(token);
    const found = isOps ? undefined : await check(token, 'console', request.ip);
    if (found === undefined) {
      reply.code(401);
      return isOps ? NO_SESSION : WRONG;
    }
    const { id: tokenId, operatorId, name: by } = found;
    const decider = { by, how: 'console', tokenId, address: request.ip, reason: undefined } as const;
    await audit(db, decider, { action: 'session.begin', subject: { kind: 'operator', id: by } });
    await sessions.begin(request, reply, operatorId, tokenId);
    return undefined;
  };
  const showPage = (reply: FastifyReply, next: string, problem?: string) =>
    reply.type('text/html; charset=utf-8').send(loginPage({ next, problem, oidc }));

  app.get(LOGIN, { config: { access: 'public' } }, async (request, reply) =>
    showPage(reply, ownPath(textOf(request.query, 'next'))),
  );
  app.post(LOGIN, { config: { access: 'public' }, bodyLimit: BODY_LIMIT }, async (request, reply) => {
    const next = ownPath(textOf(request.body, 'next'));
    const problem = await enter(request, reply).catch((error: unknown) => {
      if (!isLostConnection(error)) throw error;
      reply.code(503);
      return AWAY;
    });
    return problem === undefined ? reply.redirect(next, 303) : showPage(reply, next, problem);
  });
  app.post('/logout', { config: { access: 'viewer' } }, async (request, reply) => {
    if (textOf(request.body, 'everywhere') !== '')
      await endOperatorSessions(db, deciderOf(request), operatorOf(request).name);
    await sessions.end(request, reply);
    return reply.redirect(LOGIN, 303);
  });
  app.get('/api/session', async (request) => {
    const { name, role, how, tokenId } = operatorOf(request);
    return { name, role, how, tokenId };
  });
}

function textOf(fields: unknown, name: string): string {
  const field = (fields as Readonly<Record<string, unknown>> | null | undefined)?.[name];
  return typeof field === 'string' ? field : '';
}

/** Checks a token. It returns undefined for a bad token: the caller must not learn the reason. */
type CheckToken = (
  token: string,
  how: 'token' | 'console',
  address: string,
) => Promise<FoundToken | undefined>;

export function tokenCheck(db: Database, refusals: Refusals): CheckToken {
  return async (token, how, address) => {
    const [found] = isWellFormedToken(token, 'operator') ? await findTokens(db, [hashToken(token)]) : [];
    if (found?.state === 'good') {
      if (found.isUseStale) await storeTokenUse(db, found.id);
      return found;
    }
    const details = found && { problem: found.state, token: found.id };
    await refusals.add({ how, address, token, account: found?.name, ...(details && { details }) });
    return undefined;
  };
}
