/** What a check has found. */
export interface Finding {
  /** What was checked: `configuration`, `database`, `roles`, `queues’ Redis`, `source hetzner`, … */
  readonly check: string;
  /** `problem`: an operator has to act; `warning`: an operator should know. */
  readonly verdict: 'ok' | 'warning' | 'problem';
  /** What was found; never a secret. */
  readonly found: string;
  /** What to do; null where nothing is to be done. */
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

/** Splits what a message says at its last colon or semicolon: what is wrong, and what would do. */
export function problemOf(check: string, message: string): Finding {
  const at = Math.max(message.lastIndexOf(': '), message.lastIndexOf('; '));
  return at < 0
    ? problem(check, message, 'read the log of this server')
    : problem(check, message.slice(0, at), message.slice(at + 2));
}
