/** Sign-ins that failed, in the audit log: of guesses the first of a row, and the one by which no more are heard. */
import type { Database } from '../db/database.ts';
import { audit } from '../db/queries/audit.ts';
import type { Decider } from '../domain/operator.ts';

/** Rows of one process: whoever tries many names from many addresses must not fill the log, of which nothing is deleted. */
const AN_HOUR = 60;
const HOUR_MS = 3_600_000;

export interface Refusal extends Pick<Decider, 'how'> {
  /** The account that was tried. Undefined where there is none: what was typed may be a password, and is not kept. */
  readonly account: string | undefined;
  readonly address: string;
  /** What is known of the failure. */
  readonly details: Readonly<Record<string, unknown>>;
}

/** @param now milliseconds */
export function refusalLog(db: Database, now: () => number) {
  let written = 0;
  let until = 0;
  /** Since the last row. */
  let unrecorded = 0;
  return async ({ account, how, address, details }: Refusal): Promise<void> => {
    if (now() >= until) {
      until = now() + HOUR_MS;
      written = 0;
    }
    if (written >= AN_HOUR) {
      unrecorded += 1;
      return;
    }
    written += 1;
    const left = unrecorded;
    unrecorded = 0;
    // Nobody has proven to be anybody: "-" is no operator's name.
    await audit(
      db,
      { by: '-', how, address, reason: undefined },
      {
        action: 'session.refused',
        subject: { kind: 'operator', id: account ?? '-' },
        details: { ...details, ...(left > 0 && { unrecorded: left }) },
      },
    );
  };
}
