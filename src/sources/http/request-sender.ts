import type { IncomingMessage } from 'node:http';
import { headerOf, readAuthorization } from '../credentials/authorization.ts';
import { type CredentialProvider, fixedCredentials } from '../credentials/provider.ts';
import type { CredentialKind } from '../credentials/types.ts';
import type { JsonRequest, NotedRequest, StreamAnswer, Validator } from '../source.ts';
import { badAnswer } from '../source.ts';
import { redirectTarget, withoutQuery } from './address.ts';
import { tooLarge } from './body.ts';
import { ACCEPTED_CODINGS, decoded } from './content-coding.ts';
import { failureOfStatus } from './failure.ts';
import { get } from './get.ts';
import { conditions, NotModified, validatorIn } from './headers.ts';

const MOST_REDIRECTS = 5;

export interface RequestSenderOptions {
  readonly credentials: CredentialKind;
  readonly token?: string | CredentialProvider | undefined;
  /** Further permitted origins of redirects, for requests without credentials. */
  readonly redirectsTo?: readonly string[] | undefined;
  readonly now?: () => Date;
}

interface SentRequest {
  readonly url: URL;
  readonly signal: AbortSignal;
  readonly maxBytes: number;
  readonly headers: JsonRequest['headers'];
  readonly known: Validator | undefined;
  readonly noted: NotedRequest | undefined;
}

export interface OpenResponse {
  readonly response: IncomingMessage;
  readonly answer: Omit<StreamAnswer, 'body'>;
}

export class RequestSender {
  readonly #options: RequestSenderOptions;
  readonly #headers: Headers;
  readonly #provider: CredentialProvider;

  /** @throws SourceError `misconfigured` for an unusable token; the message does not contain it */
  constructor(base: URL, options: RequestSenderOptions) {
    const { credentials, token } = options;
    this.#options = options;
    this.#headers = new Headers({ accept: 'application/json', 'accept-encoding': ACCEPTED_CODINGS });
    // A configured token is checked at once.
    if (typeof token === 'string') readAuthorization(credentials, token, base);
    this.#provider = typeof token === 'object' ? token : fixedCredentials(token);
  }

  get hasCredentials(): boolean {
    return this.#options.credentials !== 'none' && this.#provider.exists;
  }

  /** Returns a response with status 200 and an acceptable length. @throws SourceError for another one; NotModified for a 304 */
  async open({ url, signal, maxBytes, headers, known, noted }: SentRequest): Promise<OpenResponse> {
    const { response, ...answer } = await this.#authorized(url, signal, { ...headers, ...conditions(known) });
    const status = response.statusCode ?? 0;
    noted?.answered(status);
    const now = this.#options.now?.() ?? new Date();
    const where = withoutQuery(url);
    const isUnmodified = status === 304 && known !== undefined;
    const isTooLarge = Number(answer.headers.get('content-length')) > maxBytes;
    const failure = isUnmodified
      ? new NotModified({ unmodified: known, headers: answer.headers })
      : (failureOfStatus(status, answer.headers, where, now) ??
        (isTooLarge ? tooLarge(maxBytes, where) : undefined));
    if (failure !== undefined) {
      response.destroy();
      throw failure;
    }
    const validator = validatorIn(answer.headers, url);
    return { response, answer: { ...answer, ...(validator === undefined ? {} : { validator }) } };
  }

  /** Requests once more with renewed credentials if the upstream refuses the first ones. */
  async #authorized(first: URL, signal: AbortSignal, own: Record<string, string>) {
    const provider = this.#provider;
    if (this.#options.credentials === 'none') return this.#follow(first, signal, own, undefined);
    const current = await provider.token(signal);
    const opened = await this.#follow(first, signal, own, current);
    if (opened.response.statusCode !== 401 || current === undefined || !provider.refused(current))
      return opened;
    opened.response.destroy();
    return this.#follow(first, signal, own, await provider.token(signal));
  }

  async #follow(
    first: URL,
    signal: AbortSignal,
    own: Record<string, string>,
    credential: string | undefined,
  ) {
    const { credentials, redirectsTo = [] } = this.#options;
    const headers = new Headers(this.#headers);
    let url = first;
    for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
      const authorization = readAuthorization(credentials, credential, url);
      if (authorization !== undefined) headers.set(headerOf(credentials), authorization);
      for (const [name, value] of Object.entries(own)) headers.set(name, value);
      const response = await get(url, { headers: Object.fromEntries(headers), signal });
      const { statusCode: status = 0 } = response;
      const opened = { response, headers: headersOf(response), url };
      const isRedirect = status >= 300 && status < 400 && status !== 304;
      const location = isRedirect ? opened.headers.get('location') : null;
      if (location === null) return opened;
      response.destroy();
      url = redirectTarget(url, location, authorization !== undefined, [first.origin, ...redirectsTo]);
    }
    throw badAnswer(`${withoutQuery(first)} redirects more than ${MOST_REDIRECTS} times`);
  }
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    headers.append(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '');
  return headers;
}

/** Yields the decoded body. Releases the connection in every case. */
export async function* bodyOf(
  { response, answer }: OpenResponse,
  where: string,
  noted: NotedRequest | undefined,
): AsyncGenerator<Uint8Array> {
  try {
    const body = decoded(response, answer.headers.get('content-encoding') ?? undefined, where);
    yield* noted?.counted(body) ?? body;
  } finally {
    response.destroy();
  }
}
