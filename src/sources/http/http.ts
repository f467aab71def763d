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
import { begun, chunksOf, readJson } from './body.ts';
import { type SilenceDeadline, silenceDeadline } from './deadline.ts';
import { failureOfConnection } from './failure.ts';
import { MOST_STREAM_BYTES, openSourceFile, type ReadingLimits } from './file.ts';
import { type KnownValidators, NotModified, orUnmodified, validatorIn, validatorKey } from './headers.ts';
import { bodyOf, type OpenResponse, RequestSender, type RequestSenderOptions } from './request-sender.ts';

export interface SourceHttpOptions extends ReadingLimits, RequestSenderOptions {
  /** `http:` or `https:`; for a file on this machine a `file:` URL or a path. */
  readonly baseUrl: string;
  /** The credentials that `at` sends for `key`. */
  readonly apiKey?: { readonly credentials: CredentialKind; readonly token: string };
  /** The validators of the payloads whose rows are stored, for conditional requests. */
  readonly validators?: KnownValidators;
  /** The retries of the run; without them no request is repeated. */
  readonly retries?: Retries;
  readonly requests?: Requests;
}

/** Opens a source. @throws SourceError `misconfigured` for an unusable URL or token; the message contains neither */
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

interface Attempt {
  /** Sends the request. The body of the response is unread. */
  readonly open: () => Promise<OpenResponse>;
  readonly deadline: SilenceDeadline;
  readonly where: string;
  readonly noted: NotedRequest | undefined;
  readonly failed: (error: unknown) => unknown;
  /** Returns the parts of an answer besides its body. */
  readonly answer: (opened: OpenResponse) => Omit<StreamAnswer, 'body'>;
}

/** Reads the payloads of one source, within its limits. Repeats requests that fail. */
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
    const { maxBytes } = this.#options;
    return this.#repeated(path, request, validators, maxBytes, (attempt) => {
      const { open, deadline, where, noted, answer } = attempt;
      const reading = async () => {
        const opened = await open();
        const payload = await readJson(bodyOf(opened, where, noted), schema, maxBytes, where);
        noted?.end();
        return { ...payload, ...answer(opened) };
      };
      return deadline.during(reading());
    });
  }

  /** Answers when the first chunk of the body is there: until then the request is repeated. */
  async stream(path: string, request: JsonRequest, validators?: KnownValidators): Promise<StreamAnswer> {
    const { maxStreamBytes: maxBytes = MOST_STREAM_BYTES } = this.#options;
    return this.#repeated(path, request, validators, maxBytes, async (attempt) => {
      const { open, deadline: silence, where, noted, failed, answer } = attempt;
      const opened = await silence.during(open());
      const body = await begun(chunksOf(bodyOf(opened, where, noted), { silence, maxBytes, where, failed }));
      return { body: noted?.endingWith(body) ?? body, ...answer(opened) };
    });
  }

  /** Makes a request, and repeats it if `retries` does. The signals that end a request end a pause too. */
  async #repeated<T>(
    path: string,
    request: JsonRequest,
    validators: KnownValidators | undefined,
    maxBytes: number,
    read: (attempt: Attempt) => Promise<T>,
  ): Promise<T> {
    const url = requestUrl(this.#base, path, request.query);
    const where = withoutQuery(url);
    const known = validators?.get(validatorKey(url));
    const ended = [this.#options.signal, request.signal].filter((signal) => signal !== undefined);
    const noted = this.#options.requests?.begin();
    noted?.sentTo(url);
    const attempt = async () => {
      noted?.attempt();
      const deadline = silenceDeadline(this.#options.deadlineMs);
      const signal = AbortSignal.any([deadline.signal, ...ended]);
      const failed = (error: unknown) => this.#meaning(error, where, deadline.signal.aborted, ended);
      const open = () => this.#sender.open(url, signal, maxBytes, request.headers, known, noted);
      const answer = ({ url: answered, headers }: OpenResponse) => {
        const validator = validatorIn(headers, url);
        return { headers, url: answered, ...(validator === undefined ? {} : { validator }) };
      };
      try {
        return await read({ open, deadline, where, noted, failed, answer });
      } catch (error) {
        throw failed(error);
      }
    };
    try {
      return await (this.#options.retries?.run(attempt, AbortSignal.any(ended)) ?? attempt());
    } catch (error) {
      noted?.end(error instanceof NotModified ? undefined : error);
      throw error;
    }
  }

  /** Returns the error of a failed request: the reason of the signal that ended it, or a SourceError. */
  #meaning(error: unknown, where: string, late: boolean, ended: readonly AbortSignal[]): unknown {
    if (error instanceof SourceError || error instanceof NotModified) return error;
    for (const { aborted, reason } of ended) if (aborted) return reason;
    if (!late) return failureOfConnection(error, where);
    const { deadlineMs } = this.#options;
    return new SourceError('retry', `${where} gave no whole answer within ${deadlineMs} ms`);
  }
}
