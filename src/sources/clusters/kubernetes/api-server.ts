import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { requestUrl, withoutQuery } from '../../http/address.ts';
import { chunksOf, type JsonPayload, readJson } from '../../http/body.ts';
import { decoded } from '../../http/content-coding.ts';
import { orAborted, type SilenceDeadline, silenceDeadline } from '../../http/deadline.ts';
import { failureOfConnection, failureOfStatus } from '../../http/failure.ts';
import { get } from '../../http/get.ts';
import { JsonBounds } from '../../http/json-bounds.ts';
import {
  badAnswer,
  type ClusterContext,
  type NotedRequest,
  passingFailure,
  SourceError,
  statusOf,
} from '../../source.ts';
import type { Connection } from './connect.ts';
import { linesOf } from './lines.ts';

/** Uncompressed bytes of one page. An object has at most 1.5 MiB, and rarely a tenth of that. */
const MOST_PAGE_BYTES = 128 * 1024 ** 2;
const MOST_LINE_BYTES = 8 * 1024 ** 2;
const CREDENTIALS_MS = 30_000;
const ANSWER_MS = 30_000;

/** Empty for a watch, which has its own backoff. */
export type RunOf = Pick<ClusterContext, 'retries' | 'requests'>;

export interface ApiRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** The right that the credentials need, for an operator, e.g. `list clusters.postgresql.cnpg.io`. */
  readonly right: string;
  readonly signal: AbortSignal;
}

interface Deadline {
  readonly signal: AbortSignal;
  readonly ms: number;
}

/** Each request opens and closes its own connection. */
export class ApiServer {
  readonly #connect: () => Promise<Connection>;
  readonly #refused: () => boolean;
  readonly #run: RunOf;
  #known: { readonly connection: Promise<Connection>; readonly until: number } | undefined;

  /** @param refused receives a refusal of the last credentials (401), and returns whether others may exist */
  constructor(connect: () => Promise<Connection>, refused: () => boolean = () => false, run: RunOf = {}) {
    [this.#connect, this.#refused, this.#run] = [connect, refused, run];
  }

  /** GETs JSON. The deadline includes the credentials. @throws SourceError; the signal's reason when it aborts */
  async json<T>(request: ApiRequest, schema: z.ZodType<T>, deadlineMs = ANSWER_MS): Promise<JsonPayload<T>> {
    const { retries, requests } = this.#run;
    const noted = requests?.begin();
    const attempt = async () => {
      noted?.attempt();
      const deadline = { signal: AbortSignal.timeout(deadlineMs), ms: deadlineMs };
      const { response, where } = await this.#get(request, deadline, noted);
      try {
        const body = bodyOf(response, where);
        return await readJson(noted?.counted(body) ?? body, schema, MOST_PAGE_BYTES, where);
      } catch (error) {
        throw meaning(error, where, request.signal, deadline);
      } finally {
        response.destroy();
      }
    };
    try {
      const payload = await (retries?.run(attempt, request.signal) ?? attempt());
      noted?.end();
      return payload;
    } catch (error) {
      // 404 means that a kind of object is not installed, which is no failure.
      noted?.end(statusOf(error) === 404 ? undefined : error);
      throw error;
    }
  }

  /**
   * GETs a stream of JSON lines, which the caller must read or leave at once. It ends when the server ends it, and after
   * `silenceMs` without data: the server may have disappeared without closing the connection. @throws as `json`
   */
  async stream(request: ApiRequest, silenceMs: number): Promise<AsyncGenerator<unknown, void>> {
    const silence = silenceDeadline(silenceMs);
    const opening = this.#get(request, { signal: silence.signal, ms: ANSWER_MS });
    const { response, where } = await silence.during(opening, ANSWER_MS);
    return lines(response, where, request.signal, silence);
  }

  async #get(request: ApiRequest, deadline: Deadline, noted?: NotedRequest) {
    const signal = AbortSignal.any([request.signal, deadline.signal]);
    signal.throwIfAborted();
    let where = 'the API server';
    try {
      for (let renewed = false; ; renewed = true) {
        const known = this.#known !== undefined && performance.now() < this.#known.until;
        // The deadline applies to a hanging plugin too.
        const { base, options } = await orAborted(this.#connection(), signal);
        const url = requestUrl(base, request.path, request.query);
        where = withoutQuery(url);
        noted?.sentTo(url);
        const headers = { ...options.headers, accept: 'application/json' };
        const response = await get(url, { ...options, headers, signal });
        const { statusCode: status = 0 } = response;
        noted?.answered(status);
        const failure = statusFailure(status, response.headers['retry-after'], where, request.right);
        if (failure === undefined) return { response, where };
        response.destroy();
        if (status !== 401) throw failure;
        this.#known = undefined;
        // The credentials may have been replaced after they were read, or may be renewed.
        const others = this.#refused() || known;
        if (renewed || !others) throw failure;
      }
    } catch (error) {
      throw meaning(error, where, request.signal, deadline);
    }
  }

  /** Caches the credentials for the pages of a list: a plugin may take a second. */
  #connection(): Promise<Connection> {
    const now = performance.now();
    if (this.#known !== undefined && now < this.#known.until) return this.#known.connection;
    const known = { connection: this.#connect(), until: now + CREDENTIALS_MS };
    this.#known = known;
    known.connection.catch(() => {
      if (this.#known === known) this.#known = undefined;
    });
    return known.connection;
  }
}

/** Decodes the body, since a gateway may compress it without a request. */
function bodyOf(response: IncomingMessage, where: string): AsyncIterable<Uint8Array> {
  return decoded(response, response.headers['content-encoding'], where);
}

async function* lines(
  response: IncomingMessage,
  where: string,
  signal: AbortSignal,
  silence: SilenceDeadline,
): AsyncGenerator<unknown, void> {
  const options = { silence, maxBytes: Number.POSITIVE_INFINITY, where, failed: (error: unknown) => error };
  try {
    for await (const line of linesOf(chunksOf(bodyOf(response, where), options), MOST_LINE_BYTES))
      yield parsed(line, where);
  } catch (error) {
    if (!silence.signal.aborted || signal.aborted) throw meaning(error, where, signal);
  } finally {
    response.destroy();
  }
}

function parsed(line: string, where: string): unknown {
  new JsonBounds(where).check(Buffer.from(line));
  try {
    return JSON.parse(line);
  } catch {
    // The parser's message quotes the line.
    throw badAnswer(`${where} sends a line that is not JSON`);
  }
}

function meaning(error: unknown, where: string, signal: AbortSignal, deadline?: Deadline): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof SourceError) return error;
  if (deadline?.signal.aborted)
    return passingFailure(`${where} gave no whole answer within ${deadline.ms} ms`);
  if (error instanceof RangeError) return badAnswer(`${where} sends ${error.message}`);
  return failureOfConnection(error, where);
}

/** Returns the failure of a status in a response or in an event of a watch; undefined for 200. */
export function statusFailure(status: number, retryAfter: string | undefined, where: string, right: string) {
  const remedy = {
    401: "it rejects the credentials; check the source's token or kubeconfig",
    403: `allow the credentials to ${right} (RBAC), or exclude that kind by the option kinds`,
  }[status];
  if (remedy !== undefined)
    return new SourceError('misconfigured', `${where} answers ${status}: ${remedy}`, { status });
  const headers = new Headers(retryAfter === undefined ? {} : { 'retry-after': retryAfter });
  return failureOfStatus(status, headers, where, new Date());
}
