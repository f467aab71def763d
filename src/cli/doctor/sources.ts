import type { InspectedConfig } from '../../config/config.ts';
import type { NamedSource } from '../../config/named-sources.ts';
import { databaseUrl } from '../../config/settings.ts';
import { openSqlStore } from '../../db/open.ts';
import { type SourceStatus, sourceStatus } from '../../db/reads/status.ts';
import { lastWorkerSign } from '../../db/reads/workers.ts';
import { postgresProblem } from '../../db/server-problem.ts';
import { messageOf } from '../../domain/driver-error.ts';
import { span } from '../../domain/span.ts';
import { NO_CREDENTIALS } from '../../sources/credentials/provider.ts';
import { age, ago, count } from '../table.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

/** A worker claims a slot each minute. */
const WORKER_SILENT_MS = 180_000;

/** Whether a worker runs, and of each source whether it is read. */
export async function checkSources(config: InspectedConfig, now: () => Date): Promise<Finding[]> {
  const url = databaseUrl(config);
  await using store = openSqlStore({ url, role: 'worker', connections: 2 });
  try {
    const [sign, stored] = await Promise.all([lastWorkerSign(store.sql), sourceStatus(store.sql)]);
    const byId = new Map(stored.map((status) => [status.id, status]));
    const named = new Set(config.named.map(({ id }) => id));
    const at = now();
    return [
      checkWorker(sign, at),
      ...config.named.map((source) =>
        sourceFinding(source, byId.get(source.id), lacksCredentials(config, source.id), at),
      ),
      ...stored.filter(({ id }) => !named.has(id)).flatMap((status) => strangerFinding(status, at)),
    ];
  } catch (error) {
    const why = postgresProblem(error, { setting: 'DATABASE_URL', url });
    // The database has been looked at on its own.
    return [warning('sources', `not looked at: ${why ?? messageOf(error)}`, null)];
  }
}

function checkWorker(sign: string | undefined, now: Date): Finding {
  const mend = 'start one: `fleetbook work`, or `fleetbook up`';
  if (sign === undefined) return warning('workers', 'none has run yet', mend);
  if (now.getTime() - Date.parse(sign) <= WORKER_SILENT_MS) return ok('workers', `one ran ${ago(sign, now)}`);
  return problem('workers', `none runs: the last sign of one is ${age(sign, now)} old`, mend);
}

/** Whether a source's adapter has a use for credentials, and the source has none. */
function lacksCredentials({ sources }: InspectedConfig, id: string): boolean {
  const source = sources.find((each) => each.id === id);
  if (source === undefined) return false;
  const { credentials } = source.adapter;
  return credentials !== 'none' && credentials !== 'optional-bearer' && source.credentials === NO_CREDENTIALS;
}

/** What is to be said of a source that is configured; the worst of it first, and nothing besides. */
function sourceFinding(
  { id, maxAge }: Pick<NamedSource, 'id' | 'maxAge'>,
  status: SourceStatus | undefined,
  lacksCredentials: boolean,
  now: Date,
): Finding {
  const check = `source ${id}`;
  const show = `see fleetbook source show ${id}`;
  const without = lacksCredentials ? ', and it has no credentials' : '';
  if (status?.disabled) {
    const { at, by } = status.disabled;
    return warning(
      check,
      `disabled ${ago(at, now)} by ${by}`,
      `fleetbook source enable ${id}, to read it again`,
    );
  }
  const ended = status?.lastEnded ?? null;
  const error = ended?.error ? `: ${ended.error}` : '';
  if (status === undefined || status.verifiedAt === null) {
    if (ended === null)
      return warning(check, `it never ran${without}`, `fleetbook sync ${id}, or start a worker`);
    const mend = lacksCredentials ? `give it credentials; ${show}` : `mend what it says; ${show}`;
    return problem(
      check,
      `it was never read well${without}; its last run ended as ${ended.outcome}${error}`,
      mend,
    );
  }
  const isStale = (instant: string) => now.getTime() - Date.parse(instant) > maxAge * 1000;
  if (status.held > 0) {
    const found = 'a batch is held for a decision, and readers keep what was before';
    return (isStale(status.verifiedAt) ? problem : warning)(check, found, `fleetbook hold show ${id}`);
  }
  if (isStale(status.verifiedAt)) {
    const found = `last read well ${ago(status.verifiedAt, now)}, and its data may be ${span(maxAge)} old${without}${error}`;
    return problem(
      check,
      found,
      error ? `mend what it says; ${show}` : `start a worker, or fleetbook sync ${id}`,
    );
  }
  const old = status.regions.filter(({ verifiedAt }) => verifiedAt === null || isStale(verifiedAt));
  const [oldest] = old;
  if (oldest !== undefined) {
    const why = oldest.reason === null ? '' : `: ${oldest.reason}`;
    return problem(
      check,
      `${count(old.length, 'region')} not read for long, ${oldest.code} first${why}`,
      show,
    );
  }
  if (ended?.outcome === 'failed')
    return warning(check, `its last run failed${error}`, `it is tried again; ${show}`);
  const unread = status.regions.filter(({ unreadSince }) => unreadSince !== null).length;
  if (unread > 0) return warning(check, `its last run could not read ${count(unread, 'region')}`, show);
  return ok(check, `last read well ${ago(status.verifiedAt, now)}`);
}

/** Of a source that is stored and not configured here. */
function strangerFinding({ id, retiredAt, published, verifiedAt }: SourceStatus, now: Date): Finding[] {
  if (retiredAt !== null || published === 0) return [];
  const read = verifiedAt === null ? '' : `, as of ${ago(verifiedAt, now)}`;
  return [
    warning(
      `source ${id}`,
      `not configured here, and still published${read}`,
      `configure it again, or fleetbook source retire ${id}`,
    ),
  ];
}
