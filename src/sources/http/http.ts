import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { type CredentialProvider, fixedCredentials } from '../credentials/provider.ts';
import {
  type CredentialKind,
  type JsonAnswer,
  type JsonRequest,
  type NotedRequest,
  type Requests,
  type Retries,
  SourceError,
  type SourceHttp,
  type StreamAnswer,
  type Validator,
} from '../source.ts';
import { readJson, tooLarge } from './body.ts';
import { ACCEPTED_CODINGS, decoded } from './content-coding.ts';
import { exo2Signature, GOOD_FOR_S } from './exo2-signature.ts';
import { failureOfConnection, failureOfStatus } from './failure.ts';
import { MOST_STREAM_BYTES, openSourceFile, type ReadingLimits } from './file.ts';
import { get } from './get.ts';
import { begun, chunksOf, silenceDeadline } from './stream.ts';
import {
  conditions,
  type KnownValidators,
  NotModified,
  orUnmodified,
  validatorIn,
  validatorKey,
} from './validators.ts';

const MOST_REDIRECTS = 5;

export interface SourceHttpOptions extends ReadingLimits {
  /** `http:` or `https:`; for a file on this machine a `file:` URL or a path. */
  readonly baseUrl: string;
  readonly credentials: CredentialKind;
  /**
   * The token, or `user:password` for `basic` (and `basic-or-bearer`), or `key:secret` for `exo2-hmac-sha256`, or a
   * provider of it. Without one, requests carry no credentials.
   */
  readonly token?: string | CredentialProvider | undefined;
  /** What `at` sends for `key`. */
  readonly apiKey?: { readonly credentials: CredentialKind; readonly token: string };
  readonly userAgent?: string;
  /** Origins to which requests without credentials may be redirected, besides that of `baseUrl`. */
  readonly redirectsTo?: readonly string[] | undefined;
  /** The validators of the payloads whose rows are stored, for conditional requests. */
  readonly validators?: KnownValidators;
  /** For a `Retry-After` that names a date. */
  readonly now?: () => Date;
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
  const given = readBaseUrl(options.baseUrl);
  if (given === undefined || given.protocol === 'file:')
    return openSourceFile(given ?? options.baseUrl, options);
  const base = given;
  const common = new Headers({ accept: 'application/json', 'accept-encoding': ACCEPTED_CODINGS });
  if (options.userAgent !== undefined) common.set('user-agent', options.userAgent);
  const { token } = options;
  // A token that is known now is checked now.
  if (typeof token === 'string') readAuthorization(options.credentials, token, base);
  const provider = typeof token === 'object' ? token : fixedCredentials(token);

  /** As `follow`, and once more with renewed credentials when the first ones are refused. */
  async function ask(first: URL, signal: AbortSignal, request: JsonRequest): Promise<Opened> {
    if (options.credentials === 'none') return follow(first, signal, request, undefined);
    const current = await provider.token(signal);
    const opened = await follow(first, signal, request, current);
    if (opened.status !== 401 || current === undefined || !provider.refused(current)) return opened;
    opened.response.destroy();
    return follow(first, signal, request, await provider.token(signal));
  }

  /** Follows redirects. The body of the last response is still unread. */
  async function follow(
    first: URL,
    signal: AbortSignal,
    { headers: own = {} }: JsonRequest,
    credential: string | undefined,
  ): Promise<Opened> {
    const headers = new Headers(common);
    let url = first;
    for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
      const authorization = readAuthorization(options.credentials, credential, url);
      if (authorization !== undefined) headers.set(headerOf(options.credentials), authorization);
      for (const [name, value] of Object.entries(own)) headers.set(name, value);
      const response = await get(url, { headers: Object.fromEntries(headers), signal });
      const opened = { response, status: response.statusCode ?? 0, headers: headersOf(response), url };
      const isRedirect = opened.status >= 300 && opened.status < 400 && opened.status !== 304;
      const location = isRedirect ? opened.headers.get('location') : null;
      if (location === null) return opened;
      response.destroy();
      url = redirected(url, location, authorization !== undefined, [
        first.origin,
        ...(options.redirectsTo ?? []),
      ]);
    }
    throw new SourceError('invalid', `${shown(first)} redirects more than ${MOST_REDIRECTS} times`);
  }

  /** A response with a good status and an acceptable length; its body is still unread. */
  async function open(
    url: URL,
    signal: AbortSignal,
    maxBytes: number,
    request: JsonRequest,
    known: Validator | undefined,
    noted: NotedRequest | undefined,
  ): Promise<Opened> {
    const own = { ...request.headers, ...conditions(known) };
    const opened = await ask(url, signal, { ...request, headers: own });
    const { response, status, headers } = opened;
    noted?.answered(status);
    if (status === 304 && known !== undefined) {
      response.destroy();
      throw new NotModified({ unmodified: known, headers });
    }
    const failure = failureOfStatus(status, headers, shown(url), options.now?.() ?? new Date());
    if (failure !== undefined || Number(headers.get('content-length')) > maxBytes) {
      response.destroy();
      throw failure ?? tooLarge(maxBytes, shown(url));
    }
    return opened;
  }

  /** What a failed request fails with: the reason of a signal that ended it, else a SourceError. */
  function meaning(error: unknown, where: string, late: boolean, ended: readonly AbortSignal[]): unknown {
    if (error instanceof SourceError || error instanceof NotModified) return error;
    for (const { aborted, reason } of ended) if (aborted) return reason;
    if (!late) return failureOfConnection(error, where);
    return new SourceError('retry', `${where} gave no whole answer within ${options.deadlineMs} ms`);
  }

  /** Makes a request, and repeats it where `retries` does. The signals that end a request end a pause too. */
  async function repeated<T>(
    url: URL,
    request: JsonRequest,
    attempt: (ended: readonly AbortSignal[], noted: NotedRequest | undefined) => Promise<T>,
  ): Promise<T> {
    const ended = [options.signal, request.signal].filter((signal) => signal !== undefined);
    const noted = options.requests?.begin();
    noted?.sentTo(url);
    const once = () => {
      noted?.attempt();
      return attempt(ended, noted);
    };
    try {
      return await (options.retries?.run(once, AbortSignal.any(ended)) ?? once());
    } catch (error) {
      noted?.end(error instanceof NotModified ? undefined : error);
      throw error;
    }
  }

  async function json<T>(
    path: string,
    schema: z.ZodType<T>,
    request: JsonRequest,
    validators?: KnownValidators,
  ): Promise<JsonAnswer<T>> {
    const url = joined(base, path, request.query);
    const where = shown(url);
    return repeated(url, request, async (ended, noted) => {
      const deadline = AbortSignal.timeout(options.deadlineMs);
      const signal = AbortSignal.any([deadline, ...ended]);
      try {
        const known = validators?.get(validatorKey(url));
        const opened = await open(url, signal, options.maxBytes, request, known, noted);
        const payload = await readJson(bodyOf(opened, where, noted), schema, options.maxBytes, where);
        noted?.end();
        return { ...payload, ...answered(opened, url) };
      } catch (error) {
        throw meaning(error, where, deadline.aborted, ended);
      }
    });
  }

  /** Answers once the first chunk of the body is there: until then the request is repeated. */
  async function stream(
    path: string,
    request: JsonRequest,
    validators?: KnownValidators,
  ): Promise<StreamAnswer> {
    const url = joined(base, path, request.query);
    const where = shown(url);
    const maxBytes = options.maxStreamBytes ?? MOST_STREAM_BYTES;
    return repeated(url, request, async (ended, noted) => {
      const silence = silenceDeadline(options.deadlineMs);
      const signal = AbortSignal.any([silence.signal, ...ended]);
      const failed = (error: unknown) => meaning(error, where, silence.signal.aborted, ended);
      try {
        const known = validators?.get(validatorKey(url));
        const opened = await silence.during(open(url, signal, maxBytes, request, known, noted));
        const chunks = chunksOf(bodyOf(opened, where, noted), { silence, maxBytes, where, failed });
        const body = await begun(chunks);
        return { body: noted?.endingWith(body) ?? body, ...answered(opened, url) };
      } catch (error) {
        throw failed(error);
      }
    });
  }

  return {
    base,
    hasCredentials: options.credentials !== 'none' && provider.exists,
    json: (path, schema, request = {}) => json(path, schema, request),
    stream: (path, request = {}) => stream(path, request),
    jsonIfModified: (path, schema, request = {}) =>
      json(path, schema, request, options.validators).catch(orUnmodified),
    streamIfModified: (path, request = {}) => stream(path, request, options.validators).catch(orUnmodified),
    at(url, credentials) {
      const { apiKey } = options;
      if (credentials === 'key' && apiKey) return openSourceHttp({ ...options, baseUrl: url, ...apiKey });
      return openSourceHttp({ ...options, baseUrl: url, token: credentials === 'none' ? undefined : token });
    },
  };
}

/** An answer whose body is still unread. */
interface Opened {
  readonly response: IncomingMessage;
  readonly status: number;
  readonly headers: Headers;
  /** The address that answered, after redirects. */
  readonly url: URL;
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    headers.append(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '');
  return headers;
}

/** The decoded body. The connection is closed, or kept alive, however its reading ends. */
async function* bodyOf(
  { response, headers }: Opened,
  where: string,
  noted: NotedRequest | undefined,
): AsyncGenerator<Uint8Array> {
  try {
    const body = decoded(response, headers.get('content-encoding') ?? undefined, where);
    yield* noted?.counted(body) ?? body;
  } finally {
    response.destroy();
  }
}

function answered({ url, headers }: Opened, asked: URL): Omit<StreamAnswer, 'body'> {
  const validator = validatorIn(headers, asked);
  return { headers, url, ...(validator === undefined ? {} : { validator }) };
}

/** The address as it may be logged: without its query, which can hold a key. */
function shown(url: URL): string {
  return url.origin + url.pathname;
}

function joined(base: URL, path: string, query: JsonRequest['query'] = {}): URL {
  let url = new URL(base);
  if (/^https?:/i.test(path)) {
    url = new URL(path);
    if (url.origin !== base.origin) {
      throw new SourceError(
        'invalid',
        `${shown(base)} links to another origin, ${url.origin}, which is not followed`,
      );
    }
  } else if (path !== '') {
    url.pathname = `${base.pathname.replace(/\/+$/, '')}/${path.replace(/^\/+/, '')}`;
  }
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
  return url;
}

/** @param allowed origins to which a request without credentials may go */
function redirected(from: URL, location: string, authorized: boolean, allowed: readonly string[]): URL {
  const to = URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  if (to === undefined || !/^https?:$/.test(to.protocol)) {
    throw new SourceError('invalid', `${shown(from)} redirects to something that is no http address`);
  }
  if (to.origin === from.origin) return to;
  const refused = authorized
    ? ' with credentials'
    : from.protocol === 'https:' && to.protocol === 'http:'
      ? ' without encryption'
      : allowed.includes(to.origin)
        ? undefined
        : '';
  if (refused !== undefined) {
    throw new SourceError(
      'misconfigured',
      `${shown(from)} redirects to another origin, ${to.origin}, which is not followed${refused}; if that is right, ` +
        `set the source's URL to it${refused === '' ? ', or name the origin in its redirectsTo' : ''}`,
    );
  }
  return to;
}

/** Undefined for a path on this machine. */
function readBaseUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return undefined;
  if (!/^(https?|file):$/.test(url.protocol)) {
    throw new SourceError(
      'misconfigured',
      `the source's URL starts with ${url.protocol}; it must start with http:, https: or file:`,
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw new SourceError(
      'misconfigured',
      "the source's URL holds credentials; give them as the source's token instead",
    );
  }
  return url;
}

/** How a token is sent to a source that takes several kinds of credentials. */
function sentAs(
  accepted: Exclude<CredentialKind, 'none'>,
  token: string,
): 'basic' | 'exo2-hmac-sha256' | keyof typeof SCHEMES {
  if (accepted === 'optional-bearer') return 'bearer';
  if (accepted === 'basic-or-bearer') return token.includes(':') ? 'basic' : 'bearer';
  return accepted;
}

/** What stands before a token in its header. */
const SCHEMES = { bearer: 'Bearer ', aivenv1: 'aivenv1 ', 'x-auth-token': '', 'x-goog-api-key': '' } as const;

function headerOf(kind: CredentialKind): string {
  return kind.startsWith('x-') ? kind : 'authorization';
}

/** @param url of the request, which some credentials sign */
function readAuthorization(
  accepted: CredentialKind,
  token: string | undefined,
  url: URL,
): string | undefined {
  if (accepted === 'none' || token === undefined || token === '') return undefined;
  const kind = sentAs(accepted, token);
  if (kind === 'basic') {
    if (token.includes(':')) return `Basic ${Buffer.from(token).toString('base64')}`;
    throw new SourceError('misconfigured', "the source's token must have the form user:password");
  }
  if (kind === 'exo2-hmac-sha256') {
    if (/^[\x21-\x7e]+:[\x21-\x7e]+$/.test(token))
      return exo2Signature(token, url, Math.floor(Date.now() / 1000) + GOOD_FOR_S);
    throw new SourceError('misconfigured', "the source's token must have the form key:secret");
  }
  // Checked here: the error of `Headers` would repeat the token.
  if (/^[\x21-\x7e]+$/.test(token)) return `${SCHEMES[kind]}${token}`;
  throw new SourceError(
    'misconfigured',
    "the source's token holds a blank or another character that no header can carry",
  );
}
