/** The parts of the operators' server that features add. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { SignedIn } from './access.ts';
import type { Refusals } from './refusals.ts';

export interface OpsPart {
  /** Adds the routes for signing in. At most one part has it. Without it, only OPS_TOKEN opens the server. */
  readonly addSignIn?: (app: FastifyInstance, gate: Gate) => Promise<SignIn>;
  /** Adds pages. Unless a part adds `/`, the server shows a page of links there. */
  readonly addPages?: (app: FastifyInstance) => void;
  /** Adds routes below `/api`. */
  readonly addApi?: (api: FastifyInstance, shared: OpsApi) => void;
  /** Called after a route of any part has changed data. */
  readonly changed?: () => Promise<void>;
  /** Returns a line for the log once the server listens; undefined for none. */
  readonly advice?: () => Promise<string | undefined>;
}

/** Checks that the routes for signing in share with the guard. */
export interface Gate {
  isOpsToken(token: string): boolean;
  /** Counts failed sign-ins, and blocks an address with too many. */
  readonly refusals: Refusals;
}

/** Finds the operator of a request. Its response is cut when the token or session ends. */
export interface SignIn {
  /** Path of the sign-in page. */
  readonly page: string;
  /** Returns undefined for a bad token, and adds it to the refusals. */
  byToken(token: string, request: FastifyRequest, reply: FastifyReply): Promise<SignedIn | undefined>;
  /** Returns undefined without a live session. */
  bySession(request: FastifyRequest, reply: FastifyReply): Promise<SignedIn | undefined>;
}

/** Functions for the routes of all parts. */
export interface OpsApi {
  /** Notifies all parts of changed data. */
  changed(): Promise<void>;
}
