import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { parseJson, readBytes } from '../../http/body.ts';
import { decoded } from '../../http/content-coding.ts';
import { failureOfConnection, failureOfStatus } from '../../http/failure.ts';
import { get } from '../../http/get.ts';
import { orAborted } from '../../http/or-aborted.ts';
import { SourceError } from '../../source.ts';
import type { Connection } from './connect.ts';
import { linesOf } from './lines.ts';

/** Of one page, uncompressed; objects have at most 1.5 MiB each, and hardly ever a tenth of that. */
const MOST_PAGE_BYTES = 128 * 1024 ** 2;
const MOST_LINE_BYTES = 8 * 1024 ** 2;
const CREDENTIALS_MS = 30_000;

/** The server no longer knows what happened since a resource version, or a list's continuation (410). */
export class Expired extends Error {
  override readonly name = 'Expired';
}

/** There is nothing at this path: the cluster does not know that kind of object (404). */
export class NotFound extends Error {
  override readonly name = 'NotFound';
}

/** The credentials lack a right (403). Its message names it. */
export class Forbidden extends SourceError {}

export interface ApiRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** What the credentials must be allowed to do, for an operator, e.g. `list clusters.postgresql.cnpg.io`. */
  readonly right: string;
  readonly signal: AbortSignal;
}

/** What asks an API server; each request is made over a connection of its own, which ends with it. */
export class ApiServer {
  readonly #connect: () => Promise<Connection>;
  readonly #refused: () => boolean;
  #known: { readonly connection: Promise<Connection>; readonly until: number } | undefined;

  /** @param refused is told that the credentials of the last connection were (401): whether others may be had */
  constructor(connect: () => Promise<Connection>, refused: () => boolean = () => false) {
    this.#connect = connect;
    this.#refused = refused;
  }

  /**
   * GETs a document.
   * @param deadlineMs for the whole of it, credentials included
   * @throws Expired, NotFound; SourceError by the meanings that its kinds have; the signal's reason when that aborts
   */
  async json<T>(request: ApiRequest, schema: z.ZodType<T>, deadlineMs: number): Promise<T> {
    using deadline = new Deadline(deadlineMs);
    const { response, where } = await this.#get(request, deadline);
    try {
      const bytes = await readBytes(bodyOf(response, where), MOST_PAGE_BYTES, where);
      return parseJson(bytes, schema, where);
    } catch (error) {
      throw meaning(error, where, request.signal, deadline);
    } finally {
      response.destroy();
    }
  }

  /**
   * GETs a stream of JSON lines; it has to be read, or left, at once. It ends when the server ends it, and when nothing
   * came for `silenceMs`: a connection of which only this half is left says nothing for ever.
   * @param openMs for its beginning, credentials included
   * @throws as `json` does, while it is read as well; SourceError `retry` when the connection is cut
   */
  async stream(
    request: ApiRequest,
    { openMs, silenceMs }: { readonly openMs: number; readonly silenceMs: number },
  ): Promise<AsyncGenerator<unknown, void>> {
    const deadline = new Deadline(openMs);
    try {
      const { response, where } = await this.#get(request, deadline);
      deadline.restart(silenceMs);
      return lines(response, where, request.signal, deadline);
    } catch (error) {
      deadline[Symbol.dispose]();
      throw error;
    }
  }

  async #get(request: ApiRequest, deadline: Deadline): Promise<{ response: IncomingMessage; where: string }> {
    const signal = AbortSignal.any([request.signal, deadline.signal]);
    signal.throwIfAborted();
    let where = 'the API server';
    try {
      for (let renewed = false; ; renewed = true) {
        const known = this.#known !== undefined && performance.now() < this.#known.until;
        // A plugin that hangs is not waited for longer than an answer would be.
        const connection = await orAborted(this.#connection(), signal);
        const url = addressOf(connection.base, request);
        where = url.origin + url.pathname;
        const headers = { ...connection.options.headers, accept: 'application/json' };
        const response = await get(url, { ...connection.options, headers, signal });
        const failure = failureOf(response, where, request.right);
        if (failure === undefined) return { response, where };
        response.destroy();
        if (response.statusCode !== 401) throw failure;
        this.#known = undefined;
        // The credentials may have been replaced since they were read, or can be renewed.
        const others = this.#refused() || known;
        if (renewed || !others) throw failure;
      }
    } catch (error) {
      throw meaning(error, where, request.signal, deadline);
    }
  }

  /** Credentials are read anew now and then, but not for each page of a list: a plugin may take a second. */
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

/** Nothing is asked for compressed; what stands before the server may do so all the same. */
function bodyOf(response: IncomingMessage, where: string): AsyncIterable<Uint8Array> {
  return decoded(response, response.headers['content-encoding'], where);
}

async function* lines(
  response: IncomingMessage,
  where: string,
  signal: AbortSignal,
  deadline: Deadline,
): AsyncGenerator<unknown, void> {
  try {
    const pieces = heard(bodyOf(response, where), () => deadline.restart());
    for await (const line of linesOf(pieces, MOST_LINE_BYTES)) yield parsed(line, where);
  } catch (error) {
    if (deadline.passed && !signal.aborted) return;
    throw meaning(error, where, signal, deadline);
  } finally {
    deadline[Symbol.dispose]();
    response.destroy();
  }
}

/** A timer that aborts its signal, until it is left. */
class Deadline implements Disposable {
  readonly #controller = new AbortController();
  #timer: NodeJS.Timeout;
  #ms: number;

  constructor(ms: number) {
    this.#ms = ms;
    this.#timer = setTimeout(() => this.#controller.abort(), ms);
  }

  get ms(): number {
    return this.#ms;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get passed(): boolean {
    return this.#controller.signal.aborted;
  }

  restart(ms = this.#ms): void {
    clearTimeout(this.#timer);
    this.#ms = ms;
    this.#timer = setTimeout(() => this.#controller.abort(), ms);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}

async function* heard(body: AsyncIterable<Uint8Array>, each: () => void): AsyncGenerator<Uint8Array, void> {
  for await (const piece of body) {
    each();
    yield piece;
  }
}

function parsed(line: string, where: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // The parser's own message quotes the line.
    throw new SourceError('invalid', `${where} sends a line that is no JSON`);
  }
}

function meaning(error: unknown, where: string, signal: AbortSignal, deadline: Deadline): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof SourceError || error instanceof Expired || error instanceof NotFound) return error;
  if (deadline.passed)
    return new SourceError('retry', `${where} gave no whole answer within ${deadline.ms} ms`);
  if (error instanceof RangeError) return new SourceError('invalid', `${where} sends ${error.message}`);
  return failureOfConnection(error, where);
}

function failureOf(response: IncomingMessage, where: string, right: string): Error | undefined {
  return statusFailure(response.statusCode ?? 0, response.headers['retry-after'], where, right);
}

/** What a status means, whether it is an answer's or one that a watch reports; undefined for 200. */
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
      `${where} answers 401: it does not accept the credentials; check the source's token or kubeconfig`,
    );
  }
  if (status === 403) {
    return new Forbidden(
      'misconfigured',
      `${where} answers 403: allow the credentials to ${right} (RBAC), or leave that kind out by the option kinds`,
    );
  }
  const headers = new Headers(retryAfter === undefined ? {} : { 'retry-after': retryAfter });
  return failureOfStatus(status, headers, where, new Date());
}
