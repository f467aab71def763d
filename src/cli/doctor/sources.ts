import type { InspectedConfig } from '../../config/config.ts';
import { databaseUrl } from '../../config/settings.ts';
import type { Environment } from '../../config/source-config.ts';
import { sourceSettings } from '../../config/source-settings.ts';
import { openStore } from '../../db/connection/connect.ts';
import { postgresProblem } from '../../db/connection/server-problem.ts';
import { pendingBatches } from '../../db/held-batches.ts';
import { type SourceStatus, sourceStatus } from '../../db/sources.ts';
import { lastWorkerSign } from '../../db/sync/slots.ts';
import { messageOf } from '../../domain/errors.ts';
import { span } from '../../domain/text/time-span.ts';
import { NO_CREDENTIALS } from '../../sources/credentials/provider.ts';
import { age, ago, count } from '../terminal/output.ts';
import { type Finding, ok, problem, warning } from './finding.ts';
import { type FailedSource, failureRemedy } from './source-remedy.ts';

/** A worker claims a slot each minute. */
const WORKER_SILENT_MS = 180_000;

export async function checkSources(
  config: InspectedConfig,
  env: Environment,
  now: () => Date,
): Promise<Finding[]> {
  const url = databaseUrl(config);
  await using store = openStore({ url, role: 'worker', connections: 2 });
  try {
    const [sign, stored, held] = await Promise.all([
      lastWorkerSign(store.sql),
      sourceStatus(store.sql),
      pendingBatches(store.sql),
    ]);
    const byId = new Map(stored.map((status) => [status.id, status]));
    const named = new Set(config.named.map(({ id }) => id));
    const at = now();
    return [
      checkWorker(sign, at),
      ...config.named.map((source) =>
        sourceFinding(
          {
            id: source.id,
            maxAge: source.maxAge,
            settings: sourceSettings(source, config.settings, env),
            lacksCredentials: lacksCredentials(config, source.id),
            heldBatch: held.find(({ sourceId }) => sourceId === source.id)?.id,
          },
          byId.get(source.id),
          at,
        ),
      ),
      ...stored.filter(({ id }) => !named.has(id)).flatMap((status) => notConfiguredFinding(status, at)),
    ];
  } catch (error) {
    const why = postgresProblem(error, { setting: 'DATABASE_URL', url });
    // The check of the database reports the problem.
    return [warning('sources', `not checked: ${why ?? messageOf(error)}`, null)];
  }
}

function checkWorker(sign: string | undefined, now: Date): Finding {
  const fix = 'start one: fleetbook work, or fleetbook up for everything on one machine';
  if (sign === undefined) return warning('workers', 'none has run yet', fix);
  if (now.getTime() - Date.parse(sign) <= WORKER_SILENT_MS) return ok('workers', `one ran ${ago(sign, now)}`);
  return problem('workers', `none runs: the last sign of one is ${age(sign, now)} old`, fix);
}

function lacksCredentials({ sources }: InspectedConfig, id: string): boolean {
  const source = sources.find((each) => each.id === id);
  if (source === undefined) return false;
  const { credentials } = source.adapter;
  return credentials !== 'none' && credentials !== 'optional-bearer' && source.credentials === NO_CREDENTIALS;
}

interface CheckedSource extends FailedSource {
  readonly maxAge: number;
  readonly heldBatch: number | undefined;
}

/** Returns the most severe finding about a configured source. */
function sourceFinding(source: CheckedSource, status: SourceStatus | undefined, now: Date): Finding {
  const { id, maxAge, lacksCredentials } = source;
  const check = `source ${id}`;
  const show = `see which and why: fleetbook source show ${id}`;
  const start = `start a worker, or run: fleetbook sync ${id}`;
  const without = lacksCredentials ? ', and it has no credentials' : '';
  if (status?.disabled) {
    const found = `disabled ${ago(status.disabled.at, now)} by ${status.disabled.by}`;
    return warning(check, found, `to read it again: fleetbook source enable ${id}`);
  }
  if (status?.paused) {
    const { until, reason } = status.paused;
    const fix = 'it runs again by itself then; Run now in the console runs it at once';
    return warning(check, `paused until ${until}: ${reason}`, fix);
  }
  const ended = status?.lastEnded ?? null;
  const error = ended?.error ? `: ${ended.error}` : '';
  const isStale = (instant: string | null) =>
    instant === null || now.getTime() - Date.parse(instant) > maxAge * 1000;
  if (status !== undefined && status.held > 0) {
    const found = 'a batch is held for a decision; readers keep the last good data';
    return (isStale(status.verifiedAt) ? problem : warning)(
      check,
      found,
      decideCommands(id, source.heldBatch),
    );
  }
  if (status === undefined || status.verifiedAt === null) {
    if (ended === null) return warning(check, `it never ran${without}`, start);
    const found = `it was never read well${without}; its last run ended as ${ended.outcome}${error}`;
    return problem(check, found, failureRemedy(ended.error, source));
  }
  const read = `last read well ${ago(status.verifiedAt, now)}`;
  if (isStale(status.verifiedAt)) {
    const found = `${read}; the limit is ${span(maxAge)}${without}${error}`;
    return problem(check, found, error ? failureRemedy(ended?.error ?? null, source) : start);
  }
  const old = status.regions.filter(({ verifiedAt }) => isStale(verifiedAt));
  const [oldest] = old;
  if (oldest !== undefined) {
    const why = oldest.reason === null ? '' : `: ${oldest.reason}`;
    const found = `${count(old.length, 'region')} not read for ${span(maxAge)}, ${oldest.code} first${why}`;
    return problem(check, found, show);
  }
  if (ended?.outcome === 'failed') {
    const fix = `the worker tries again by itself. If it keeps failing, ${failureRemedy(ended.error, source)}`;
    return warning(check, `its last run failed${error}`, fix);
  }
  const unread = status.regions.filter(({ unreadSince }) => unreadSince !== null).length;
  if (unread > 0) return warning(check, `its last run could not read ${count(unread, 'region')}`, show);
  return ok(check, read);
}

function decideCommands(id: string, batch: number | undefined): string {
  const named = batch === undefined ? '<batch>' : String(batch);
  return `see it: fleetbook hold show ${id}. Then decide: fleetbook hold approve ${id} ${named}, or: fleetbook hold reject ${id} ${named}`;
}

function notConfiguredFinding({ id, retiredAt, published, verifiedAt }: SourceStatus, now: Date): Finding[] {
  if (retiredAt !== null || published === 0) return [];
  const read = verifiedAt === null ? '' : `, as of ${ago(verifiedAt, now)}`;
  const fix = `configure it again, or take its data out of publication: fleetbook source retire ${id}`;
  return [warning(`source ${id}`, `not configured here, and still published${read}`, fix)];
}
