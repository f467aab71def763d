import { z } from 'zod';
import { problemsOf } from '../schema/rows.ts';
import type { IssuedToken } from './provider.ts';

const token = z.string().min(1).max(16_384);
const seconds = z.union([z.number(), z.string().regex(/^\d{1,12}$/)]).transform(Number);
const instant = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

/** RFC 6749, section 5.1; Azure's and Google's metadata services answer the same. */
const OAuthAnswer = z
  .object({ access_token: token, expires_in: seconds.nullish() })
  .transform(({ access_token, expires_in }) => ({ token: access_token, lifetime: expires_in }));

const CommandAnswer = z.union(
  [
    z.object({ token, expiry: instant.nullish() }).transform((each) => ({ ...each, lifetime: undefined })),
    z
      .object({ status: z.object({ token, expirationTimestamp: instant.nullish() }) })
      .transform(({ status }) => ({ token: status.token, expiry: status.expirationTimestamp })),
    OAuthAnswer,
    // `az account get-access-token`; its `expiresOn` is local time without a zone.
    z
      .object({ accessToken: token, expires_on: seconds.nullish() })
      .transform(({ accessToken, expires_on }) => ({
        token: accessToken,
        expiry: expires_on == null ? undefined : expires_on * 1000,
      })),
  ],
  { error: 'has no token' },
);

/** Returns the token in the answer of an authorization server, or a problem that quotes nothing of it. */
export function tokenInAnswer(payload: unknown): IssuedToken | { readonly problem: string } {
  const parsed = OAuthAnswer.safeParse(payload);
  if (!parsed.success) return { problem: problemsOf(parsed.error) };
  const { token: issued, lifetime } = parsed.data;
  return { token: issued, lifetimeMs: lifetime == null ? undefined : lifetime * 1000 };
}

/** Returns the token in the output of a command: the text itself, or JSON in a known form; undefined for other output. */
export function tokenInOutput(output: string, now: number): IssuedToken | undefined {
  const text = output.trim();
  if (!text.startsWith('{'))
    return /^[^\s]+$/.test(text) ? { token: text, lifetimeMs: undefined } : undefined;
  const parsed = CommandAnswer.safeParse(jsonIn(text));
  if (!parsed.success) return undefined;
  const found: { token: string; lifetime?: number | null | undefined; expiry?: number | null | undefined } =
    parsed.data;
  if (found.lifetime != null) return { token: found.token, lifetimeMs: found.lifetime * 1000 };
  // If it has expired already, the upstream's 401 reports that.
  const lifetimeMs = found.expiry == null ? undefined : Math.max(found.expiry - now, 0);
  return { token: found.token, lifetimeMs };
}

/** Returns the value of a JSON text; undefined if it is invalid. The parser's message would quote the text. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
