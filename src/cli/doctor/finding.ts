/** What a check has found. */
export interface Finding {
  /** What was looked at: `configuration`, `database`, `roles`, `queues’ Redis`, `source hetzner`, … */
  readonly check: string;
  /** `problem`: it has to be mended; `warning`: somebody should know of it. */
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
    ? problem(check, message, 'see the log')
    : problem(check, message.slice(0, at), message.slice(at + 2));
}

/** Whether a version, e.g. `7.0.15`, is at least another one. */
export function isAtLeast(version: string, oldest: readonly [major: number, minor: number]): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > oldest[0] || (major === oldest[0] && minor >= oldest[1]);
}
