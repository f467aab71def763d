/** Who asks, and what they may do: for every route of the operators' pages. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Decider, Role, Way } from '../domain/operator.ts';
import { problemPage } from './pages.ts';

/** The operator of a request. */
export interface SignedIn {
  /** As the audit log names them; `OPS_TOKEN` for a program with that token. */
  readonly name: string;
  readonly role: Role;
  readonly how: Exclude<Way, 'cli'>;
  /** The operator token of the request, or of its session. */
  readonly tokenId?: number | undefined;
  /** True where a browser sends what proves it on its own accord: changing requests have to prove their origin. */
  readonly bySession: boolean;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Undefined only on public routes. */
    signedIn: SignedIn | undefined;
  }
  interface FastifyContextConfig {
    /** Who may ask: everybody, or who has at least this role. Unless given viewers may read, and operators change. */
    readonly access?: 'public' | Role;
  }
}

/** What a request's route asks for. */
export function neededRole({ method, routeOptions }: FastifyRequest): 'public' | Role {
  const { access } = routeOptions.config ?? {};
  return access ?? (isChanging(method) ? 'operator' : 'viewer');
}

export const isChanging = (method: string): boolean => !['GET', 'HEAD', 'OPTIONS'].includes(method);

/** The operator of a request. @throws Error on a public route */
export function operatorOf({ signedIn }: FastifyRequest): SignedIn {
  if (signedIn === undefined) throw new Error('a public route has no operator');
  return signedIn;
}

/** Who acts by a request, for the audit log. @param reason what the person gave, on one line @throws Error on a public route */
export function deciderOf(request: FastifyRequest, reason?: string): Decider {
  const { name: by, how, tokenId } = operatorOf(request);
  return { by, how, tokenId, address: request.ip, reason };
}

/** What somebody reads who looks by a browser. */
const TITLES: Readonly<Record<number, string>> = {
  401: 'Sign in first',
  403: 'Not allowed',
  429: 'Too many tries',
  503: 'Not now',
};

/** Answers with an error: `{"error": "…"}` below `/api/`, a page for who asks for one, else plain text. */
export function refuse(
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  why: string,
): FastifyReply {
  reply.code(status);
  if (isApi(request)) return reply.send({ error: why });
  if (wantsPage(request))
    return reply
      .type('text/html; charset=utf-8')
      .send(problemPage(TITLES[status] ?? 'This did not work', why));
  return reply.type('text/plain; charset=utf-8').send(`${why}\n`);
}

/** Whether a browser asks for something that a person reads. */
export const wantsPage = ({ headers }: FastifyRequest): boolean =>
  /\btext\/html\b/.test(headers.accept ?? '');

export const isApi = ({ url }: FastifyRequest): boolean => /^\/api(?:[/?]|$)/.test(url);
