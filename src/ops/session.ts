/**
 * Sessions of operators. A signed cookie holds a random id, and PostgreSQL holds its digest. The row, role, epoch and state
 * of the account are read at every request, so that a session ends in every process with its sign-out, when the account is
 * disabled, and when the account signs in another way.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Store } from '../db/connect.ts';
import {
  beginSession,
  endSession,
  endTokenSessions,
  type LiveSession,
  liveSessions,
  noteSessionUse,
} from '../db/queries/sessions.ts';
import type { Account } from '../db/reads/operators.ts';
import { cookieName, cookieOptions, setSigned, signedText } from './cookies.ts';
import type { SignedIn } from './roles.ts';
import { OF_TOKEN } from './token-gate.ts';

export interface SessionLimits {
  /** Seconds without a request after which a session is over. */
  readonly idle: number;
  /** Seconds after which it is over anyway. */
  readonly lifetime: number;
}

export interface SessionDependencies extends SessionLimits {
  readonly store: Pick<Store, 'db'>;
  readonly keys: SessionKeys;
  /** Milliseconds. */
  readonly now: () => number;
}

export interface SessionKeys {
  /** Of the cookie's signature, which the plugin makes. */
  readonly secret: string;
  /** Part of the sessions that OPS_TOKEN opened: they end when it is another one. Undefined where there is none. */
  readonly tokenMark: string | undefined;
}

/** Derived by a fast hash: both have at least 32 characters. @returns undefined without either */
export function sessionKeys(key: string | undefined, token: string | undefined): SessionKeys | undefined {
  const from = key ?? token;
  if (from === undefined) return undefined;
  const secret = mac(from, 'fleetbook operators’ sessions');
  return { secret, tokenMark: token === undefined ? undefined : mac(secret, `token ${token}`) };
}

export interface FoundSession {
  readonly signedIn: SignedIn;
  /** Names the session within this process. */
  readonly key: string;
}

/** Another name than the cookie of earlier releases, which run next to this one during an upgrade. */
const COOKIE = 'fleetbook-session';
const ID_BYTES = 32;
const ID = /^session\.([A-Za-z0-9_-]{43})$/;

/** A use is stored when the last stored one is older than this. */
const SEEN_EVERY_MS = 60_000;

export class Sessions {
  readonly #deps: SessionDependencies;

  constructor(deps: SessionDependencies) {
    this.#deps = deps;
  }

  /** Begins a session, and ends the one that this browser had. */
  async begin(
    request: FastifyRequest,
    reply: FastifyReply,
    account: Pick<Account, 'id' | 'sessionEpoch'> | undefined,
  ): Promise<void> {
    const { store, keys, lifetime } = this.#deps;
    const before = idOf(request);
    if (before !== undefined) await endSession(store.db, digestOf(before));
    const id = randomBytes(ID_BYTES).toString('base64url');
    const session = {
      digest: digestOf(id),
      operatorId: account?.id ?? null,
      epoch: account ? String(account.sessionEpoch) : (keys.tokenMark ?? ''),
    };
    await beginSession(store.db, session, this.#ago(0), this.#ago(lifetime));
    setSigned(request, reply, COOKIE, `session.${id}`);
  }

  /** The request's session; undefined without a live one. Keeps it from being idle. */
  async find(request: FastifyRequest): Promise<FoundSession | undefined> {
    const id = idOf(request);
    if (id === undefined) return undefined;
    const digest = digestOf(id);
    const [live] = await this.#live([digest]);
    if (live === undefined) return undefined;
    const now = this.#ago(0);
    if (now.getTime() - live.seenAt.getTime() >= SEEN_EVERY_MS)
      await noteSessionUse(this.#deps.store.db, digest, now);
    return { signedIn: signedInOf(live), key: digest.toString('hex') };
  }

  /** The keys of those sessions that have not ended. */
  async liveKeys(keys: readonly string[]): Promise<ReadonlySet<string>> {
    const live = await this.#live(keys.map((key) => Buffer.from(key, 'hex')));
    return new Set(live.map(({ digest }) => digest.toString('hex')));
  }

  /** Ends the request's session, also for copies of its cookie. */
  async end(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const id = idOf(request);
    if (id !== undefined) await endSession(this.#deps.store.db, digestOf(id));
    reply.clearCookie(cookieName(request, COOKIE), cookieOptions(request));
  }

  /** Ends all sessions that OPS_TOKEN opened. */
  async endOfToken(): Promise<void> {
    await endTokenSessions(this.#deps.store.db);
  }

  /** What a program sends as `x-csrf-token` with its changing requests; undefined without a session. */
  csrfToken(request: FastifyRequest): string | undefined {
    const id = idOf(request);
    return id === undefined ? undefined : mac(this.#deps.keys.secret, `csrf ${id}`);
  }

  hasCsrfToken(request: FastifyRequest): boolean {
    const expected = this.csrfToken(request);
    const given = request.headers['x-csrf-token'];
    if (expected === undefined || typeof given !== 'string') return false;
    const [one, other] = [Buffer.from(given), Buffer.from(expected)];
    return one.length === other.length && timingSafeEqual(one, other);
  }

  #live(digests: readonly Buffer[]): Promise<LiveSession[]> {
    const { store, idle, lifetime, keys } = this.#deps;
    return liveSessions(store.db, digests, {
      beganAfter: this.#ago(lifetime),
      seenAfter: this.#ago(idle),
      tokenMark: keys.tokenMark,
    });
  }

  #ago(seconds: number): Date {
    return new Date(this.#deps.now() - seconds * 1000);
  }
}

function signedInOf({ operator }: LiveSession): SignedIn {
  if (operator === undefined) return { ...OF_TOKEN, bySession: true };
  const { name, role, byOidc } = operator;
  return { name, role, how: byOidc ? 'oidc' : 'console', bySession: true };
}

const idOf = (request: FastifyRequest): string | undefined => ID.exec(signedText(request, COOKIE) ?? '')?.[1];

/** The id is random, so that a fast hash hides it. */
const digestOf = (id: string): Buffer => createHash('sha256').update(id).digest();

const mac = (secret: string, text: string) => createHmac('sha256', secret).update(text).digest('base64url');
