import { steadyNow } from '../../domain/clock.ts';
import { orAborted } from '../http/deadline.ts';

export interface CredentialProvider {
  readonly exists: boolean;
  /** Returns a token, or `user:password`; undefined if the source has none. @throws SourceError if there is no token */
  token(signal?: AbortSignal): Promise<string | undefined>;
  /** Drops a token that the upstream refused (401). Returns whether another token may exist: then request it once more. */
  refused(token: string): boolean;
}

export function fixedCredentials(token: string | undefined): CredentialProvider {
  return { exists: token !== undefined && token !== '', token: async () => token, refused: () => false };
}

export const NO_CREDENTIALS: CredentialProvider = fixedCredentials(undefined);

export interface IssuedToken {
  readonly token: string;
  readonly lifetimeMs: number | undefined;
}

/** The longest time between renewal and expiry: a request with the token must arrive before it expires. */
const MOST_MARGIN_MS = 3 * 60_000;
const UNSTATED_LIFETIME_MS = 5 * 60_000;

/**
 * Returns credentials that expire. They stay in memory until shortly before they expire, and are renewed once if an upstream
 * refuses them. All waiting requests share one request to the issuer (single flight).
 */
export function renewingCredentials(
  issue: () => Promise<IssuedToken>,
  now: () => number = steadyNow,
): CredentialProvider {
  let known: { readonly token: string; readonly until: number } | undefined;
  let pending: Promise<string> | undefined;

  async function renewed(): Promise<string> {
    try {
      const { token, lifetimeMs = UNSTATED_LIFETIME_MS } = await issue();
      known = { token, until: now() + lifetimeMs - Math.min(MOST_MARGIN_MS, lifetimeMs / 10) };
      return token;
    } finally {
      pending = undefined;
    }
  }

  return {
    exists: true,
    async token(signal) {
      if (known !== undefined && now() < known.until) return known.token;
      if (pending === undefined) {
        pending = renewed();
        // All waiting requests may be aborted.
        pending.catch(() => {});
      }
      return signal === undefined ? pending : orAborted(pending, signal);
    },
    refused(token) {
      // Another request may already have renewed it.
      if (known?.token === token) known = undefined;
      return true;
    },
  };
}
