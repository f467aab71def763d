import type { z } from 'zod';
import type { CredentialKind } from '../credentials/types.ts';
import type { NotedRequest, Requests } from '../run-requests.ts';
import {
  type JsonAnswer,
  type JsonRequest,
  type Retries,
  SourceError,
  type SourceHttp,
  type StreamAnswer,
} from '../source.ts';
import { readBaseUrl, requestUrl, withoutQuery } from './address.ts';
import { readJson } from './body.ts';
import { failureOfConnection } from './failure.ts';
import { MOST_STREAM_BYTES, openSourceFile, type ReadingLimits } from './file.ts';
import { answerOf, bodyOf, RequestSender, type RequestSenderOptions } from './request-sender.ts';
import { begun, chunksOf, silenceDeadline } from './stream.ts';
import { type KnownValidators, NotModified, orUnmodified, validatorKey } from './validators.ts';

export interface SourceHttpOptions extends ReadingLimits, RequestSenderOptions {
  /** `http:` or `https:`; for a file on this machine a `file:` URL or a path. */
  readonly baseUrl: string;
  /** What `at` sends for `key`. */
  readonly apiKey?: { readonly credentials: CredentialKind; readonly token: string };
  /** The validators of the payloads whose rows are stored, for conditional requests. */
  readonly validators?: KnownValidators;
  /** Those of the run that the requests belong to; without them no request is repeated. */
  readonly retries?: Retries;
  /** Notes the requests of the run. */
  readonly requests?: Requests;
}

/**
 * Opens a source; no request is made yet.
 * @throws SourceError `misconfigured` for a URL or token that cannot be used; neither is repeated in the message
 */
export function openSourceHttp(options: SourceHttpOptions): SourceHttp {
  const base = readBaseUrl(options.baseUrl);
  if (base === undefined || base.protocol === 'file:')
    return openSourceFile(base ?? options.baseUrl, options);
  const reader = new PayloadReader(base, options);
  const { validators, apiKey, token } = options;
  return {
    base,
    hasCredentials: reader.hasCredentials,
    json: (path, schema, request = {}) => reader.json(path, schema, request),
    stream: (path, request = {}) => reader.stream(path, request),
    jsonIfModified: (path, schema, request = {}) =>
      reader.json(path, schema, request, validators).catch(orUnmodified),
    streamIfModified: (path, request = {}) => reader.stream(path, request, validators).catch(orUnmodified),
    at(url, credentials) {
      if (credentials === 'key' && apiKey) return openSourceHttp({ ...options, baseUrl: url, ...apiKey });
      return openSourceHttp({ ...options, baseUrl: url, token: credentials === 'none' ? undefined : token });
    },
  };
}

/** Reads the payloads of one source, within its limits, and repeats requests that fail. */
class PayloadReader {
  readonly #base: URL;
  readonly #options: SourceHttpOptions;
  readonly #sender: RequestSender;

  constructor(base: URL, options: SourceHttpOptions) {
    this.#base = base;
    this.#options = options;
    this.#sender = new RequestSender(base, options);
  }

  get hasCredentials(): boolean {
    return this.#sender.hasCredentials;
  }

  async json<T>(
    path: string,
    schema: z.ZodType<T>,
    request: JsonRequest,
    validators?: KnownValidators,
  ): Promise<JsonAnswer<T>> {
    const { deadlineMs, maxBytes } = this.#options;
    const url = requestUrl(this.#base, path, request.query);
    const where = withoutQuery(url);
    return this.#repeated(url, request, async (ended, noted) => {
      const deadline = AbortSignal.timeout(deadlineMs);
      const signal = AbortSignal.any([deadline, ...ended]);
      try {
        const known = validators?.get(validatorKey(url));
        const opened = await this.#sender.open(url, signal, maxBytes, request, known, noted);
        const payload = await readJson(bodyOf(opened, where, noted), schema, maxBytes, where);
        noted?.end();
        return { ...payload, ...answerOf(opened, url) };
      } catch (error) {
        throw this.#meaning(error, where, deadline.aborted, ended);
      }
    });
  }

  /** Answers once the first chunk of the body is there: until then the request is repeated. */
  async stream(path: string, request: JsonRequest, validators?: KnownValidators): Promise<StreamAnswer> {
    const { deadlineMs, maxStreamBytes: maxBytes = MOST_STREAM_BYTES } = this.#options;
    const url = requestUrl(this.#base, path, request.query);
    const where = withoutQuery(url);
    return this.#repeated(url, request, async (ended, noted) => {
      const silence = silenceDeadline(deadlineMs);
      const signal = AbortSignal.any([silence.signal, ...ended]);
      const failed = (error: unknown) => this.#meaning(error, where, silence.signal.aborted, ended);
      try {
        const known = validators?.get(validatorKey(url));
        const opening = this.#sender.open(url, signal, maxBytes, request, known, noted);
        const opened = await silence.during(opening);
        const chunks = chunksOf(bodyOf(opened, where, noted), { silence, maxBytes, where, failed });
        const body = await begun(chunks);
        return { body: noted?.endingWith(body) ?? body, ...answerOf(opened, url) };
      } catch (error) {
        throw failed(error);
      }
    });
  }

  /** Makes a request, and repeats it where `retries` does. The signals that end a request end a pause too. */
  async #repeated<T>(
    url: URL,
    request: JsonRequest,
    attempt: (ended: readonly AbortSignal[], noted: NotedRequest | undefined) => Promise<T>,
  ): Promise<T> {
    const ended = [this.#options.signal, request.signal].filter((signal) => signal !== undefined);
    const noted = this.#options.requests?.begin();
    noted?.sentTo(url);
    const once = () => {
      noted?.attempt();
      return attempt(ended, noted);
    };
    try {
      return await (this.#options.retries?.run(once, AbortSignal.any(ended)) ?? once());
    } catch (error) {
      noted?.end(error instanceof NotModified ? undefined : error);
      throw error;
    }
  }

  /** What a failed request fails with: the reason of a signal that ended it, else a SourceError. */
  #meaning(error: unknown, where: string, late: boolean, ended: readonly AbortSignal[]): unknown {
    if (error instanceof SourceError || error instanceof NotModified) return error;
    for (const { aborted, reason } of ended) if (aborted) return reason;
    if (!late) return failureOfConnection(error, where);
    const { deadlineMs } = this.#options;
    return new SourceError('retry', `${where} gave no whole answer within ${deadlineMs} ms`);
  }
}
