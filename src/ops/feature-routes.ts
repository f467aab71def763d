import type { Queue } from 'bullmq';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Database } from '../db/connection/connect.ts';
import type { SignedIn } from './access.ts';
import type { Refusals } from './refusals.ts';

export interface OpsPart {
  /** Adds the routes for signing in. At most one part has it. Without it, only OPS_TOKEN opens the server. */
  readonly addSignIn?: (app: FastifyInstance, gate: Gate) => Promise<SignIn>;
  readonly addPages?: (app: FastifyInstance) => void;
  readonly addApi?: (api: FastifyInstance, shared: OpsApi) => void;
  /** Called after a route of any part has changed data. */
  readonly changed?: () => Promise<void>;
  /** Returns a line for the log once the server listens; undefined for none. */
  readonly advice?: () => Promise<string | undefined>;
}

export interface Gate {
  isOpsToken(token: string): boolean;
  /** Counts failed sign-ins, and blocks an address with too many. */
  readonly refusals: Refusals;
}

/** Finds the operator of a request. Its response is cut when the token or session ends. */
export interface SignIn {
  readonly page: string;
  /** Returns undefined for a bad token, and adds it to the refusals. */
  byToken(token: string, request: FastifyRequest, reply: FastifyReply): Promise<SignedIn | undefined>;
  bySession(request: FastifyRequest, reply: FastifyReply): Promise<SignedIn | undefined>;
}

export interface OpsApi {
  changed(): Promise<void>;
}

export interface OpsDependencies {
  /** OPS_TOKEN: bearer token, or password of HTTP Basic with any user; its role is admin. */
  readonly token: string | undefined;
  metrics(): Promise<string>;
  readonly queues: readonly Queue[];
  /** The parts of features. Without a part for signing in and without a token, only the health check is open. */
  readonly parts?: readonly OpsPart[];
  readonly db?: Database | undefined;
  /** Addresses and CIDR blocks of proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted. */
  readonly trustProxy?: readonly string[] | undefined;
  readonly logger?: Pick<Logger, 'warn'> | undefined;
  /** Most open connections. */
  readonly connections?: number;
  readonly now?: () => number;
}
