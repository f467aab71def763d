/** What a feature adds to the operators' server. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { SignedIn } from './access.ts';
import type { Refusals } from './refusals.ts';

export interface OpsPart {
  /** Adds the routes for signing in. One part at most has it; without it OPS_TOKEN alone opens the server. */
  readonly addSignIn?: (app: FastifyInstance, gate: Gate) => Promise<SignIn>;
  /** Adds pages. Without a part that adds `/` the server shows a page of links there. */
  readonly addPages?: (app: FastifyInstance) => void;
  /** Adds routes below `/api`. */
  readonly addApi?: (api: FastifyInstance, shared: OpsApi) => void;
  /** Called after a route of any part has changed something. */
  readonly changed?: () => Promise<void>;
  /** Returns a line for the log once the server listens; undefined for none. */
  readonly advice?: () => Promise<string | undefined>;
}

/** What the routes for signing in share with the check of each request. */
export interface Gate {
  isOpsToken(token: string): boolean;
  /** Counts failed sign-ins, and closes an address that has too many. */
  readonly refusals: Refusals;
}

/** Recognizes the operator of a request. The request's response ends with the token or session. */
export interface SignIn {
  /** Path of the sign-in page. */
  readonly page: string;
  /** Undefined for a token that is not good, which is added to the refusals. */
  byToken(token: string, request: FastifyRequest, reply: FastifyReply): Promise<SignedIn | undefined>;
  /** Undefined without a live session. */
  bySession(request: FastifyRequest, reply: FastifyReply): Promise<SignedIn | undefined>;
}

/** What the routes of all parts share. */
export interface OpsApi {
  /** Tells all parts that something has changed. */
  changed(): Promise<void>;
}
