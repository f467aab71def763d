/** Signing in by a page with a form, signing out, and `/api/session`, which says who is signed in. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Database } from '../../db/connect.ts';
import { isLostConnection } from '../../db/errors.ts';
import { endOperatorSessions } from '../../db/operators.ts';
import { audit } from '../../db/queries/audit.ts';
import type { tokenCheck } from './credentials.ts';
import { ownPath } from './own-path.ts';
import { type LoginPage, loginPage } from './pages.ts';
import { deciderOf } from './roles.ts';
import type { Sessions } from './sessions.ts';

export const LOGIN = '/login';
const LOGOUT = '/logout';
const API = '/api/session';

/** Bytes of a token and a path. */
const BODY_LIMIT = 16_384;

export interface SignInRoutes {
  readonly sessions: Sessions;
  readonly db: Database;
  readonly check: ReturnType<typeof tokenCheck>;
  /** The start of OpenID Connect, if it is configured. */
  readonly oidc: LoginPage['oidc'];
}

type Fields = Readonly<Record<string, unknown>>;

interface Refusal {
  readonly status: 401 | 429 | 503;
  readonly problem: string;
}

const NO_SESSION =
  'OPS_TOKEN is for programs and opens no session. Create an operator with a token: fleetbook operator create <name> --role admin';
const WRONG =
  'The token is wrong, expired or revoked. Operators’ tokens begin with fbo_; for a new one: fleetbook operator token <name>';

export function addSignInRoutes(app: FastifyInstance, { sessions, db, check, oidc }: SignInRoutes): void {
  app.addContentTypeParser<string>(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: BODY_LIMIT },
    (_, body, done) => done(null, Object.fromEntries(new URLSearchParams(body))),
  );

  /** @returns why no session began */
  const enter = async (request: FastifyRequest, reply: FastifyReply): Promise<Refusal | undefined> => {
    const checked = await check(request, textOf(request.body, 'token').trim(), 'console');
    switch (checked.outcome) {
      case 'OPS_TOKEN':
        return { status: 401, problem: NO_SESSION };
      case 'refused':
        return { status: 401, problem: WRONG };
      case 'later':
        reply.header('retry-after', String(checked.seconds));
        return { status: 429, problem: checked.problem };
      case 'operator': {
        const { id: tokenId, operatorId, name: by } = checked.token;
        const decider = { by, how: 'console', tokenId, address: request.ip, reason: undefined } as const;
        await audit(db, decider, { action: 'session.begin', subject: { kind: 'operator', id: by } });
        await sessions.begin(request, reply, { operatorId, tokenId });
        return undefined;
      }
    }
  };
  const away = (error: unknown): Refusal => {
    if (!isLostConnection(error)) throw error;
    return { status: 503, problem: 'PostgreSQL does not answer; try again in a moment.' };
  };

  app.get(LOGIN, { config: { access: 'public' } }, async (request, reply) =>
    showPage(reply, { next: ownPath(textOf(request.query, 'next')), oidc }),
  );
  app.post(LOGIN, { config: { access: 'public' }, bodyLimit: BODY_LIMIT }, async (request, reply) => {
    const next = ownPath(textOf(request.body, 'next'));
    const refusal = await enter(request, reply).catch(away);
    if (refusal === undefined) return reply.redirect(next, 303);
    return showPage(reply.code(refusal.status), { next, problem: refusal.problem, oidc });
  });
  app.post(LOGOUT, { config: { access: 'viewer' } }, async (request, reply) => {
    const { signedIn } = request;
    if (signedIn && textOf(request.body, 'everywhere') !== '')
      await endOperatorSessions(db, deciderOf(request), signedIn.name);
    await sessions.end(request, reply);
    return reply.redirect(LOGIN, 303);
  });
  app.get(API, async ({ signedIn }) => {
    if (signedIn === undefined) throw new Error('unreachable: the route is not public');
    const { name, role, how, tokenId } = signedIn;
    return { name, role, how, ...(tokenId !== undefined && { tokenId }) };
  });
}

const showPage = (reply: FastifyReply, page: LoginPage) =>
  reply.type('text/html; charset=utf-8').send(loginPage(page));

function textOf(fields: unknown, name: string): string {
  const field = (fields as Fields | null | undefined)?.[name];
  return typeof field === 'string' ? field : '';
}
