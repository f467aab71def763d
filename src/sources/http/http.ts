import type { z } from 'zod';
import type { CredentialKind } from '../credentials/types.ts';
import {
  type JsonAnswer,
  type JsonRequest,
  type NotedRequest,
  passingFailure,
  type Requests,
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
import { type KnownValidators, NotModified, orUnmodified, validatorKey } from './headers.ts';
import { bodyOf, type OpenResponse, RequestSender, type RequestSenderOptions } from './request-sender.ts';

export interface SourceHttpOptions extends ReadingLimits, RequestSenderOptions {
  /** `http:` or `https:`; for a file on this machine a `file:` URL or a path. */
  readonly baseUrl: string;
  readonly apiKey?: { readonly credentials: CredentialKind; readonly token: string };
  readonly validators?: KnownValidators;
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
    hasCredentials: reader.sender.hasCredentials,
    json: (path, schema, request) => reader.json(path, schema, request),
    stream: (path, request) => reader.stream(path, request),
    jsonIfModified: (path, schema, request) =>
      reader.json(path, schema, request, validators).catch(orUnmodified),
    streamIfModified: (path, request) => reader.stream(path, request, validators).catch(orUnmodified),
    at(url, credentials) {
      if (credentials === 'key' && apiKey) return openSourceHttp({ ...options, baseUrl: url, ...apiKey });
      return openSourceHttp({ ...options, baseUrl: url, token: credentials === 'none' ? undefined : token });
    },
  };
}

interface Attempt {
  readonly open: () => Promise<OpenResponse>;
  readonly silence: SilenceDeadline;
  readonly where: string;
  readonly noted: NotedRequest | undefined;
  /** Returns the error of a failed request: the reason of the signal that ended it, or a SourceError. */
  readonly failed: (error: unknown) => unknown;
}

class PayloadReader {
  readonly sender: RequestSender;
  readonly #base: URL;
  readonly #options: SourceHttpOptions;

  constructor(base: URL, options: SourceHttpOptions) {
    [this.#base, this.#options, this.sender] = [base, options, new RequestSender(base, options)];
  }

  json<T>(
    path: string,
    schema: z.ZodType<T>,
    request: JsonRequest = {},
    validators?: KnownValidators,
  ): Promise<JsonAnswer<T>> {
    const { maxBytes } = this.#options;
    return this.#repeated(path, request, validators, maxBytes, ({ open, silence, where, noted }) => {
      const reading = async () => {
        const opened = await open();
        const payload = await readJson(bodyOf(opened, where, noted), schema, maxBytes, where);
        noted?.end();
        return { ...payload, ...opened.answer };
      };
      return silence.during(reading());
    });
  }

  /** Answers when the first chunk of the body is there: until then the request is repeated. */
  stream(path: string, request: JsonRequest = {}, validators?: KnownValidators): Promise<StreamAnswer> {
    const { maxStreamBytes: maxBytes = MOST_STREAM_BYTES } = this.#options;
    return this.#repeated(path, request, validators, maxBytes, async (attempt) => {
      const { open, silence, where, noted, failed } = attempt;
      const opened = await silence.during(open());
      const body = await begun(chunksOf(bodyOf(opened, where, noted), { silence, maxBytes, where, failed }));
      return { body: noted?.endingWith(body) ?? body, ...opened.answer };
    });
  }

  /** The signals that end a request end a pause too. */
  async #repeated<T>(
    path: string,
    request: JsonRequest,
    validators: KnownValidators | undefined,
    maxBytes: number,
    read: (attempt: Attempt) => Promise<T>,
  ): Promise<T> {
    const { deadlineMs, retries, requests } = this.#options;
    const url = requestUrl(this.#base, path, request.query);
    const where = withoutQuery(url);
    const known = validators?.get(validatorKey(url));
    const ended = [this.#options.signal, request.signal].filter((signal) => signal !== undefined);
    const noted = requests?.begin();
    noted?.sentTo(url);
    const attempt = async () => {
      noted?.attempt();
      const silence = silenceDeadline(deadlineMs);
      const signal = AbortSignal.any([silence.signal, ...ended]);
      const failed = (error: unknown) => {
        if (error instanceof SourceError || error instanceof NotModified) return error;
        for (const { aborted, reason } of ended) if (aborted) return reason;
        if (!silence.signal.aborted) return failureOfConnection(error, where);
        return passingFailure(`${where} gave no whole answer within ${deadlineMs} ms`);
      };
      const open = () => this.sender.open({ url, signal, maxBytes, headers: request.headers, known, noted });
      return read({ open, silence, where, noted, failed }).catch((error: unknown) => {
        throw failed(error);
      });
    };
    try {
      return await (retries?.run(attempt, AbortSignal.any(ended)) ?? attempt());
    } catch (error) {
      noted?.end(error instanceof NotModified ? undefined : error);
      throw error;
    }
  }
}
