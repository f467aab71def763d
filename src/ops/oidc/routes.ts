/** Signing in by OpenID Connect: the way to the issuer, and the way back. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Store } from '../../db/connect.ts';
import { isLostConnection } from '../../db/errors.ts';
import { type OidcSignIn, signInByOidc } from '../../db/queries/oidc-operators.ts';
import { type OidcSettings, roleByClaims } from '../../domain/oidc.ts';
import { type AddressFailures, tooManyFailures } from '../address-failures.ts';
import { cookieName, cookieOptions, setSigned, signedText } from '../cookies.ts';
import { type LoginPage, loginPage, onwardPage } from '../login-page.ts';
import { ownPath } from '../own-path.ts';
import type { RecordRefusal } from '../refusals.ts';
import type { Sessions } from '../session.ts';
import { type Flow, IssuerAway, openOidc, type Person, SignInRefused } from './client.ts';

const START = '/login/oidc';
const CALLBACK = '/login/oidc/callback';
const COOKIE = 'fleetbook-oidc';
/** A person may have to type a password and a code at the issuer. */
const FLOW_S = 600;
/** Requests to the issuer that this process makes at the same time, whoever causes them. */
const AT_ONCE = 8;

export interface OidcRoutes {
  readonly oidc: OidcSettings;
  readonly sessions: Sessions;
  readonly store: Pick<Store, 'sql' | 'db'>;
  readonly failures: AddressFailures;
  readonly record: RecordRefusal;
  /** Milliseconds. */
  readonly now: () => number;
}

interface KeptFlow extends Flow {
  readonly next: string;
  /** Seconds. */
  readonly since: number;
}

interface Problem {
  readonly status: 401 | 403 | 429 | 503;
  readonly text: string;
  /** For the audit log; undefined for what says nothing of a person. */
  readonly code?: string;
  readonly account?: string | undefined;
}

const BUSY: Problem = { status: 503, text: 'Too many sign-ins at this moment; try again.' };
const AWAY: Problem = { status: 503, text: 'The issuer does not answer; try again in a moment.' };
const NOT_BEGUN: Problem = {
  status: 401,
  text: 'This sign-in was not begun in this browser, or more than ten minutes ago; begin again.',
};

/** @returns what the login page links to */
export function addOidcRoutes(
  app: FastifyInstance,
  { oidc, sessions, store, failures, record, now }: OidcRoutes,
): NonNullable<LoginPage['oidc']> {
  const issuer = openOidc(oidc, `${oidc.origin}${CALLBACK}`, now);
  const link = { start: `${oidc.origin}${START}`, issuer: new URL(oidc.issuer).host };
  const config = { access: 'public' } as const;
  let running = 0;

  const limited = async (
    { ip }: FastifyRequest,
    reply: FastifyReply,
    next: string,
    work: () => Promise<Problem | undefined>,
  ) => {
    const seconds = failures.secondsToWait(ip);
    if (seconds !== undefined) reply.header('retry-after', String(seconds));
    const closed: Problem | undefined =
      seconds === undefined ? undefined : { status: 429, text: tooManyFailures(seconds) };
    const problem = closed ?? (running >= AT_ONCE ? BUSY : await counted(work));
    if (problem === undefined) return reply;
    reply.code(problem.status).type('text/html; charset=utf-8');
    return reply.send(loginPage({ next, problem: problem.text, hasToken: false, oidc: link }));
  };
  const counted = async (work: () => Promise<Problem | undefined>): Promise<Problem | undefined> => {
    running += 1;
    try {
      return await work();
    } catch (error) {
      if (error instanceof IssuerAway) return AWAY;
      if (isLostConnection(error)) return { status: 503, text: 'PostgreSQL does not answer; try again.' };
      throw error;
    } finally {
      running -= 1;
    }
  };

  app.get<{ Querystring: { next?: unknown } }>(START, { config }, async (request, reply) => {
    const { next: asked } = request.query;
    const next = ownPath(typeof asked === 'string' ? asked : undefined);
    return limited(request, reply, next, async () => {
      const { url, flow } = await issuer.begin();
      keepFlow(request, reply, { ...flow, next, since: seconds() });
      reply.redirect(url.href, 303);
      return undefined;
    });
  });

  app.get(CALLBACK, { config }, async (request, reply) => {
    const flow = keptFlow(request);
    // A way back is gone once.
    reply.clearCookie(cookieName(request, COOKIE), cookieOptions(request, 'lax'));
    return limited(request, reply, flow?.next ?? '/', async () => {
      const problem = await enter(request, reply, flow);
      if (problem?.code !== undefined) {
        const { code, account } = problem;
        const { ip: address } = request;
        const { locked } = failures.failed(address, undefined) ?? {};
        await record({
          account,
          how: 'oidc',
          address,
          details: { problem: code, ...(locked && { locked }) },
        });
      }
      return problem;
    });
  });

  const enter = async (
    request: FastifyRequest,
    reply: FastifyReply,
    flow: KeptFlow | undefined,
  ): Promise<Problem | undefined> => {
    if (flow === undefined || seconds() - flow.since >= FLOW_S) return NOT_BEGUN;
    const [, search = ''] = /^[^?]*(\?.*)?$/.exec(request.url) ?? [];
    let person: Person;
    try {
      person = await issuer.finish(search, flow);
    } catch (error) {
      if (!(error instanceof SignInRefused)) throw error;
      const { message: code } = error;
      return { status: 401, text: `The sign-in was refused: ${code}. Begin again.`, code };
    }
    const { subject, address, claims } = person;
    const role = roleByClaims(claims, oidc);
    const found = await signInByOidc(store.db, { issuer: oidc.issuer, subject, address, role }, request.ip);
    if (found.outcome !== 'account') return refusalOf(found, address);
    await sessions.begin(request, reply, found);
    reply.type('text/html; charset=utf-8').send(onwardPage(flow.next));
    return undefined;
  };

  const seconds = () => Math.floor(now() / 1000);
  return link;
}

function refusalOf(found: Exclude<OidcSignIn, { outcome: 'account' }>, name = 'you'): Problem {
  switch (found.outcome) {
    case 'no-role':
      return {
        status: 403,
        text: `The issuer knows ${name}, but none of your groups gives a role here. Ask whoever runs Fleetbook for one (OPS_OIDC_ROLES).`,
        code: 'no role',
        account: found.account,
      };
    case 'taken':
      return {
        status: 403,
        text: `The name ${found.account} belongs to another account. An admin can hand it over: fleetbook operator use-oidc ${found.account} (and operator enable, if it is disabled)`,
        code: 'name taken',
        account: found.account,
      };
    case 'disabled':
      return {
        status: 403,
        text: `The account ${found.account} is disabled.`,
        code: 'disabled',
        account: found.account,
      };
  }
}

/** Sent along when the issuer sends the browser back, which a strict cookie is not. */
function keepFlow(request: FastifyRequest, reply: FastifyReply, flow: KeptFlow): void {
  const text = `oidc.${Buffer.from(JSON.stringify(flow)).toString('base64url')}`;
  setSigned(request, reply, COOKIE, text, { maxAge: FLOW_S, sameSite: 'lax' });
}

function keptFlow(request: FastifyRequest): KeptFlow | undefined {
  const [, text] = /^oidc\.([\w-]+)$/.exec(signedText(request, COOKIE) ?? '') ?? [];
  // Signed by us: it has the form that keepFlow gave it.
  return text === undefined ? undefined : (JSON.parse(Buffer.from(text, 'base64url').toString()) as KeptFlow);
}
