/** Records failed sign-ins, in the log and the audit log: the first failure of a row, and the one that ends it. */
import type { Logger } from 'pino';
import type { Database } from '../../db/database.ts';
import { isLostConnection } from '../../db/errors.ts';
import { audit } from '../../db/queries/audit.ts';
import type { Decider } from '../../domain/operator.ts';

/** Records of one process: tries from many addresses must not fill the audit log, which keeps all rows. */
const AN_HOUR = 60;
const HOUR_MS = 3_600_000;

export interface Refusal extends Pick<Decider, 'how'> {
  /** The operator of the token that was tried; undefined for an unknown token. */
  readonly account: string | undefined;
  readonly address: string;
  /** Facts of the failure, without the credential. */
  readonly details: Readonly<Record<string, unknown>>;
}

export type RecordRefusal = (refusal: Refusal) => Promise<void>;

/** @param db undefined in a process without operators, which only logs @param now milliseconds */
export function refusalLog(
  db: Database | undefined,
  logger: Pick<Logger, 'warn'> | undefined,
  now: () => number,
): RecordRefusal {
  let written = 0;
  let until = 0;
  /** Since the last row. */
  let unrecorded = 0;
  return async ({ account, how, address, details }) => {
    if (now() >= until) {
      until = now() + HOUR_MS;
      written = 0;
    }
    if (written >= AN_HOUR) {
      unrecorded += 1;
      return;
    }
    written += 1;
    const facts = { ...details, ...(unrecorded > 0 && { unrecorded }) };
    unrecorded = 0;
    logger?.warn({ account, how, address, ...facts }, 'a sign-in to the operators’ pages was refused');
    if (db === undefined) return;
    await audit(
      db,
      // Without a proven identity: "-" is no operator's name.
      { by: '-', how, address, reason: undefined },
      { action: 'session.refused', subject: { kind: 'operator', id: account ?? '-' }, details: facts },
    ).catch((error: unknown) => {
      // The log has it. An answer must not differ while PostgreSQL is away.
      if (!isLostConnection(error)) throw error;
    });
  };
}
