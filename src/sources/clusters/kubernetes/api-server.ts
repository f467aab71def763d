import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { chunksOf, type JsonPayload, readJson } from '../../http/body.ts';
import { decoded } from '../../http/content-coding.ts';
import { orAborted, type SilenceDeadline, silenceDeadline } from '../../http/deadline.ts';
import { failureOfConnection, failureOfStatus } from '../../http/failure.ts';
import { get } from '../../http/get.ts';
import { JsonBounds } from '../../http/json-bounds.ts';
import type { NotedRequest, Requests } from '../../run-requests.ts';
import { type Retries, SourceError } from '../../source.ts';
import type { Connection } from './connect.ts';
import { linesOf } from './lines.ts';

/** Uncompressed bytes of one page. An object has at most 1.5 MiB, and rarely a tenth of that. */
const MOST_PAGE_BYTES = 128 * 1024 ** 2;
const MOST_LINE_BYTES = 8 * 1024 ** 2;
const CREDENTIALS_MS = 30_000;

/** The server no longer has the history since a resource version, or a list's continuation (410). */
export class Expired extends Error {
  override readonly name = 'Expired';
}

export class NotFound extends Error {
  override readonly name = 'NotFound';
}

export class Forbidden extends SourceError {}

/** The retries and the request log of a run; empty for a watch. */
export interface RunOf {
  readonly retries?: Retries | undefined;
  readonly requests?: Requests | undefined;
}

export interface ApiRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** The right that the credentials need, for an operator, e.g. `list clusters.postgresql.cnpg.io`. */
  readonly right: string;
  readonly signal: AbortSignal;
}

/** The client of an API server. Each request opens and closes its own connection. */
export class ApiServer {
  readonly #connect: () => Promise<Connection>;
  readonly #refused: () => boolean;
  readonly #run: RunOf;
  #known: { readonly connection: Promise<Connection>; readonly until: number } | undefined;

  /** @param refused receives a refusal of the last credentials (401), and returns whether others may exist */
  constructor(connect: () => Promise<Connection>, refused: () => boolean = () => false, run: RunOf = {}) {
    [this.#connect, this.#refused, this.#run] = [connect, refused, run];
  }

  /** GETs JSON. The deadline includes the credentials. @throws Expired, NotFound; SourceError; the signal's reason */
  async json<T>(request: ApiRequest, schema: z.ZodType<T>, deadlineMs: number): Promise<JsonPayload<T>> {
    const { retries, requests } = this.#run;
    const noted = requests?.begin();
    const attempt = () => {
      noted?.attempt();
      return this.#jsonOnce(request, schema, deadlineMs, noted);
    };
    try {
      const payload = await (retries?.run(attempt, request.signal) ?? attempt());
      noted?.end();
      return payload;
    } catch (error) {
      // 404 means that a kind of object is not installed, which is no failure.
      noted?.end(error instanceof NotFound ? undefined : error);
      throw error;
    }
  }

  async #jsonOnce<T>(
    request: ApiRequest,
    schema: z.ZodType<T>,
    deadlineMs: number,
    noted: NotedRequest | undefined,
  ): Promise<JsonPayload<T>> {
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
  }

  /**
   * GETs a stream of JSON lines, which the caller must read or leave at once. It ends when the server ends it, and after
   * `silenceMs` without data: the server may have disappeared without closing the connection. @throws as `json`
   */
  async stream(
    request: ApiRequest,
    { openMs, silenceMs }: { readonly openMs: number; readonly silenceMs: number },
  ): Promise<AsyncGenerator<unknown, void>> {
    const silence = silenceDeadline(silenceMs);
    const opening = this.#get(request, { signal: silence.signal, ms: openMs });
    const { response, where } = await silence.during(opening, openMs);
    return lines(response, where, request.signal, silence);
  }

  async #get(
    request: ApiRequest,
    deadline: Deadline,
    noted?: NotedRequest,
  ): Promise<{ response: IncomingMessage; where: string }> {
    const signal = AbortSignal.any([request.signal, deadline.signal]);
    signal.throwIfAborted();
    let where = 'the API server';
    try {
      for (let renewed = false; ; renewed = true) {
        const known = this.#known !== undefined && performance.now() < this.#known.until;
        // The deadline applies to a hanging plugin too.
        const connection = await orAborted(this.#connection(), signal);
        const url = addressOf(connection.base, request);
        where = url.origin + url.pathname;
        noted?.sentTo(url);
        const headers = { ...connection.options.headers, accept: 'application/json' };
        const response = await get(url, { ...connection.options, headers, signal });
        noted?.answered(response.statusCode ?? 0);
        const failure = failureOf(response, where, request.right);
        if (failure === undefined) return { response, where };
        response.destroy();
        if (response.statusCode !== 401) throw failure;
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

function addressOf(base: URL, { path, query }: ApiRequest): URL {
  const url = new URL(base);
  url.pathname = `${base.pathname.replace(/\/+$/, '')}${path}`;
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url;
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
  const failed = (error: unknown) => error;
  const body = chunksOf(bodyOf(response, where), {
    silence,
    maxBytes: Number.POSITIVE_INFINITY,
    where,
    failed,
  });
  try {
    for await (const line of linesOf(body, MOST_LINE_BYTES)) yield parsed(line, where);
  } catch (error) {
    if (!silence.signal.aborted || signal.aborted) throw meaning(error, where, signal);
  } finally {
    response.destroy();
  }
}

interface Deadline {
  readonly signal: AbortSignal;
  readonly ms: number;
}

function parsed(line: string, where: string): unknown {
  new JsonBounds(where).check(Buffer.from(line));
  try {
    return JSON.parse(line);
  } catch {
    // The parser's message quotes the line.
    throw new SourceError('invalid', `${where} sends a line that is not JSON`);
  }
}

function meaning(error: unknown, where: string, signal: AbortSignal, deadline?: Deadline): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof SourceError || error instanceof Expired || error instanceof NotFound) return error;
  if (deadline?.signal.aborted)
    return new SourceError('retry', `${where} gave no whole answer within ${deadline.ms} ms`);
  if (error instanceof RangeError) return new SourceError('invalid', `${where} sends ${error.message}`);
  return failureOfConnection(error, where);
}

function failureOf(response: IncomingMessage, where: string, right: string): Error | undefined {
  return statusFailure(response.statusCode ?? 0, response.headers['retry-after'], where, right);
}

/** Returns the failure of a status in a response or in an event of a watch; undefined for 200. */
export function statusFailure(
  status: number,
  retryAfter: string | undefined,
  where: string,
  right: string,
): Error | undefined {
  if (status === 410) return new Expired(`${where} answers 410`);
  if (status === 404) return new NotFound(`${where} answers 404`);
  if (status === 401) {
    return new SourceError(
      'misconfigured',
      `${where} answers 401: it rejects the credentials; check the source's token or kubeconfig`,
    );
  }
  if (status === 403) {
    return new Forbidden(
      'misconfigured',
      `${where} answers 403: allow the credentials to ${right} (RBAC), or exclude that kind by the option kinds`,
    );
  }
  const headers = new Headers(retryAfter === undefined ? {} : { 'retry-after': retryAfter });
  return failureOfStatus(status, headers, where, new Date());
}
