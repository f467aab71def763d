/** The result of a check. */
export interface Finding {
  /** The checked subject: `configuration`, `database`, `roles`, `queues’ Redis`, `source hetzner`, … */
  readonly check: string;
  /** `problem`: an operator has to act; `warning`: an operator should know. */
  readonly verdict: 'ok' | 'warning' | 'problem';
  /** The observation; it contains no secret. */
  readonly found: string;
  /** The fix; null if none is needed. */
  readonly mend: string | null;
}

export const ok = (check: string, found: string): Finding => ({ check, verdict: 'ok', found, mend: null });

export const warning = (check: string, found: string, mend: string | null): Finding => ({
  check,
  verdict: 'warning',
  found,
  mend,
});

export const problem = (check: string, found: string, mend: string): Finding => ({
  check,
  verdict: 'problem',
  found,
  mend,
});

/** Splits a message at its last colon or semicolon into the problem and the fix. */
export function problemOf(check: string, message: string): Finding {
  const at = Math.max(message.lastIndexOf(': '), message.lastIndexOf('; '));
  return at < 0
    ? problem(check, message, 'read the log of this server')
    : problem(check, message.slice(0, at), message.slice(at + 2));
}
