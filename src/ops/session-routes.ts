/** Signing in and out: a page with a form, and the same for programs at /api/session. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Database } from '../db/connect.ts';
import { isLostConnection } from '../db/errors.ts';
import { audit } from '../db/queries/audit.ts';
import { endOperatorSessions } from '../db/queries/operators.ts';
import type { Decider } from '../domain/operator.ts';
import { tooManyFailures, waitOf } from './address-failures.ts';
import { knownDevice, rememberDevice } from './device.ts';
import { type LoginPage, loginPage } from './login-page.ts';
import { ownPath } from './own-path.ts';
import { deciderOf, refuse, type SignedIn } from './roles.ts';
import type { Sessions } from './session.ts';
import type { openSignIn } from './sign-in.ts';

export const LOGIN = '/login';
const LOGOUT = '/logout';
const API = '/api/session';

/** Bytes of a name, a password and a path. */
const BODY_LIMIT = 16_384;

export interface SessionRoutes {
  readonly sessions: Sessions;
  readonly db: Database;
  /** Milliseconds. */
  readonly now: () => number;
  readonly signIn: ReturnType<typeof openSignIn>;
  readonly hasToken: boolean;
  /** Where OpenID Connect begins, if it is configured. */
  readonly oidc: LoginPage['oidc'];
}

type Fields = Readonly<Record<string, unknown>>;

interface Refusal {
  readonly status: 401 | 429 | 503;
  readonly problem: string;
}

export function addSessionRoutes(
  app: FastifyInstance,
  { sessions, db, now, signIn, hasToken, oidc }: SessionRoutes,
): void {
  app.addContentTypeParser<string>(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: BODY_LIMIT },
    (_, body, done) => done(null, Object.fromEntries(new URLSearchParams(body))),
  );

  /** @returns who is signed in now, or the answer that says why nobody is */
  const enter = (request: FastifyRequest, reply: FastifyReply): Promise<SignedIn | Refusal> =>
    tryToEnter(request, reply).catch((error: unknown) => {
      if (!isLostConnection(error)) throw error;
      return { status: 503, problem: 'PostgreSQL does not answer; try again in a moment.' };
    });
  const tryToEnter = async (request: FastifyRequest, reply: FastifyReply): Promise<SignedIn | Refusal> => {
    const fields = fieldsOf(request.body);
    const [name, password] = [textOf(fields.name), textOf(fields.password)];
    const device = knownDevice(request, now());
    const found = await signIn({ name, password, address: request.ip, device });
    if (found.outcome === 'refused') return { status: 401, problem: 'Name or password is wrong.' };
    if (found.outcome === 'later') {
      reply.header('retry-after', String(found.seconds));
      const what = found.what === 'address' ? tooManyFailures : tooManyTries;
      return { status: 429, problem: what(found.seconds) };
    }
    const account = found.outcome === 'account' ? found.account : undefined;
    const signedIn: SignedIn = account
      ? { name: account.name, role: account.role, how: 'console', bySession: true }
      : { name: 'OPS_TOKEN', role: 'admin', how: 'token', bySession: true };
    const { name: by, how } = signedIn;
    const decider: Decider = { by, how, address: request.ip, reason: undefined };
    await audit(db, decider, { action: 'session.begin', subject: { kind: 'operator', id: by } });
    await sessions.begin(request, reply, account);
    rememberDevice(request, reply, account?.name ?? '', now());
    return signedIn;
  };

  /** @param everywhere whether all sessions of the account, or of OPS_TOKEN, end as well */
  const leave = async (request: FastifyRequest, reply: FastifyReply, everywhere: boolean): Promise<void> => {
    const { signedIn } = request;
    if (everywhere && signedIn?.how === 'token') await sessions.endOfToken();
    else if (everywhere && signedIn) await endOperatorSessions(db, deciderOf(request), signedIn.name);
    await sessions.end(request, reply);
  };

  app.get<{ Querystring: Fields }>(LOGIN, { config: { access: 'public' } }, async (request, reply) =>
    showPage(reply, { next: ownPath(textOf(request.query.next)), hasToken, oidc }),
  );
  app.post(LOGIN, { config: { access: 'public' }, bodyLimit: BODY_LIMIT }, async (request, reply) => {
    const next = ownPath(textOf(fieldsOf(request.body).next));
    const entered = await enter(request, reply);
    if (!('problem' in entered)) return reply.redirect(next, 303);
    return showPage(reply.code(entered.status), { next, problem: entered.problem, hasToken, oidc });
  });
  app.post(LOGOUT, { config: { access: 'viewer' } }, async (request, reply) => {
    await leave(request, reply, textOf(fieldsOf(request.body).everywhere) !== '');
    return reply.redirect(LOGIN, 303);
  });

  app.get(API, async (request) => told(request.signedIn, sessions.csrfToken(request)));
  app.post(API, { config: { access: 'public' }, bodyLimit: BODY_LIMIT }, async (request, reply) => {
    const entered = await enter(request, reply);
    return 'problem' in entered ? refuse(request, reply, entered.status, entered.problem) : told(entered);
  });
  app.delete<{ Querystring: Fields }>(API, { config: { access: 'viewer' } }, async (request, reply) => {
    await leave(request, reply, request.query.everywhere === 'true');
    return reply.code(204).send();
  });
}

const showPage = (reply: FastifyReply, page: LoginPage) =>
  reply.type('text/html; charset=utf-8').send(loginPage(page));

/** Who is signed in; `csrfToken` is for programs: a browser's own pages need none. */
function told(signedIn: SignedIn | undefined, csrfToken?: string) {
  if (signedIn === undefined) throw new Error('nobody is signed in on a public route');
  const { name, role, how } = signedIn;
  return { name, role, how, ...(csrfToken !== undefined && { csrfToken }) };
}

const fieldsOf = (body: unknown): Fields => (typeof body === 'object' && body !== null ? { ...body } : {});
const textOf = (field: unknown): string => (typeof field === 'string' ? field : '');
const tooManyTries = (seconds: number) => `Too many tries: try again in ${waitOf(seconds)}.`;
