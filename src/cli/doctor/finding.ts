import { BadSetting } from '../../config/settings.ts';
import { type ClientDatabase, openStore, type StoreOptions } from '../../db/connection/connect.ts';
import { postgresProblem, type ServerSetting } from '../../db/connection/server-problem.ts';
import { messageOf } from '../../domain/errors.ts';

export interface Finding {
  /** The checked subject: `configuration`, `database`, `roles`, `queues’ Redis`, `source hetzner`, … */
  readonly check: string;
  /** `problem`: an operator has to act; `warning`: an operator should know. */
  readonly verdict: 'ok' | 'warning' | 'problem';
  /** The observation; it contains no secret. */
  readonly found: string;
  readonly mend: string | null;
}

export function ok(check: string, found: string): Finding {
  return { check, verdict: 'ok', found, mend: null };
}

export function warning(check: string, found: string, mend: string | null): Finding {
  return { check, verdict: 'warning', found, mend };
}

export function problem(check: string, found: string, mend: string): Finding {
  return { check, verdict: 'problem', found, mend };
}

/** Splits a message at its last colon or semicolon into the problem and the fix. */
export function problemOf(check: string, message: string): Finding {
  const at = Math.max(message.lastIndexOf(': '), message.lastIndexOf('; '));
  return at < 0
    ? problem(check, message, 'read the log of this server')
    : problem(check, message.slice(0, at), message.slice(at + 2));
}

/** Returns the problem of a check that PostgreSQL ended with an error. @param what could not be checked */
export function postgresFinding(check: string, what: string, error: unknown, server: ServerSetting): Finding {
  const why = error instanceof BadSetting ? error.message : postgresProblem(error, server);
  return why === undefined
    ? problem(
        check,
        `${what} could not be checked: ${messageOf(error)}`,
        'read the log of PostgreSQL, which names the cause',
      )
    : problemOf(check, why);
}

export async function onPostgres(
  check: string,
  what: string,
  server: ServerSetting,
  role: StoreOptions['role'],
  find: (db: ClientDatabase) => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  await using store = openStore({ url: server.url, role, connections: 1 });
  try {
    return await find(store.db);
  } catch (error) {
    return [postgresFinding(check, what, error, server)];
  }
}
