/** Where the requests of a source get their credentials. Adapters do not know whether these are renewed. */
import { orAborted } from '../http/or-aborted.ts';

export interface CredentialProvider {
  /** False where requests carry no credentials. */
  readonly exists: boolean;
  /**
   * What the next request carries: a token, or `user:password`; undefined where the source has none.
   * @throws SourceError when none can be had; its message names the setting and holds no secret. The signal's reason
   * when that aborts
   */
  token(signal?: AbortSignal): Promise<string | undefined>;
  /** Tells that the upstream refused this token (401). True when another one may be had: ask once more. */
  refused(token: string): boolean;
}

/** Credentials that stay as they are configured. */
export function fixedCredentials(token: string | undefined): CredentialProvider {
  return { exists: token !== undefined && token !== '', token: async () => token, refused: () => false };
}

/** The credentials of a source that has none. */
export const NO_CREDENTIALS: CredentialProvider = fixedCredentials(undefined);

/** A token as its issuer gives it. */
export interface IssuedToken {
  readonly token: string;
  /** Milliseconds from now; undefined where the issuer does not say. */
  readonly lifetimeMs: number | undefined;
}

/** A token is renewed so long before it expires, at most, that a request which carries it still arrives in time. */
const MOST_MARGIN_MS = 3 * 60_000;
/** For a token whose issuer does not say how long it lives. */
const UNSTATED_LIFETIME_MS = 5 * 60_000;

/**
 * Credentials that live for a while. They are kept in memory until shortly before they expire, and renewed once when an
 * upstream refuses them. However many requests wait, the issuer is asked once (single flight).
 */
export function renewingCredentials(
  issue: () => Promise<IssuedToken>,
  now: () => number = Date.now,
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
        // Every waiter may have been aborted.
        pending.catch(() => {});
      }
      return signal === undefined ? pending : orAborted(pending, signal);
    },
    refused(token) {
      // Another request may have renewed it already.
      if (known?.token === token) known = undefined;
      return true;
    },
  };
}
