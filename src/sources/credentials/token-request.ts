import { z } from 'zod';
import { readBytes } from '../http/body.ts';
import { failureOfConnection, failureOfStatus } from '../http/failure.ts';
import { SourceError } from '../source.ts';
import { jsonIn, tokenInAnswer } from './issued-token.ts';
import type { IssuedToken } from './provider.ts';

const TOKEN_MS = 20_000;
const MOST_ANSWER_BYTES = 256 * 1024;
const PASSING = new Set(['temporarily_unavailable', 'server_error', 'slow_down']);

const OAuthError = z.object({
  error: z.string().regex(/^[a-z_]{1,60}$/i),
  error_description: z.string().optional().catch(undefined),
});

export interface TokenRequest {
  readonly url: URL;
  readonly form?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly whenRefused: string;
  readonly whenUnreachable: string;
  readonly deadlineMs?: number;
}

/**
 * Requests a token from an authorization server or a metadata service. Messages quote only error codes of the answer.
 * @throws SourceError `misconfigured` if it is refused, `retry` without an answer, `invalid` for an answer without a token
 */
export async function requestToken(request: TokenRequest): Promise<IssuedToken> {
  const { url, form, deadlineMs = TOKEN_MS } = request;
  const where = url.origin + url.pathname;
  const signal = AbortSignal.timeout(deadlineMs);
  try {
    const response = await fetch(url, {
      method: form === undefined ? 'GET' : 'POST',
      headers: { accept: 'application/json', ...request.headers },
      ...(form === undefined ? {} : { body: new URLSearchParams(form) }),
      // Only the configured server may see the credentials.
      redirect: 'manual',
      signal,
    });
    const bytes = await readBytes(response.body ?? ReadableStream.from([]), MOST_ANSWER_BYTES, where);
    const payload = jsonIn(Buffer.from(bytes).toString('utf8'));
    if (response.status !== 200) throw refusal(response, payload, where, request.whenRefused);
    const issued = tokenInAnswer(payload);
    if ('token' in issued) return issued;
    throw new SourceError('invalid', `${where} answers no token: ${issued.problem}`);
  } catch (error) {
    throw concerningAll(meaning(error, where, signal.aborted, request));
  }
}

function meaning(error: unknown, where: string, late: boolean, request: TokenRequest): SourceError {
  if (error instanceof SourceError) return error;
  if (late) {
    const problem = `${where} sent no token within ${request.deadlineMs ?? TOKEN_MS} ms`;
    return new SourceError('retry', `${problem}; ${request.whenUnreachable}`);
  }
  return failureOfConnection(error, where, request.whenUnreachable);
}

function refusal(response: Response, payload: unknown, where: string, remedy: string): SourceError {
  const { status, headers } = response;
  const { error, error_description: description = '' } = OAuthError.safeParse(payload).data ?? {};
  // A description may quote the request: only Microsoft's code in it is safe.
  const codes = [error, /\bAADSTS\d{4,8}\b/.exec(description)?.[0]].filter((code) => code !== undefined);
  const answer = `${where} answers ${status}${codes.length > 0 ? ` (${codes.join(', ')})` : ''}`;
  const passing = failureOfStatus(status, headers, where, new Date());
  // Azure's metadata service answers 410 during an update.
  if (passing?.kind === 'retry' || status === 410 || PASSING.has(error ?? '')) {
    const { retryAfterMs } = passing ?? {};
    return new SourceError('retry', answer, retryAfterMs === undefined ? {} : { retryAfterMs });
  }
  return new SourceError('misconfigured', `${answer} and no token; ${remedy}`);
}

/** Without a token no region of the source can be read. */
function concerningAll({ kind, message, cause, retryAfterMs }: SourceError): SourceError {
  return new SourceError(kind, message, {
    cause,
    limitsAll: true,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}
