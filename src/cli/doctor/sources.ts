import type { InspectedConfig } from '../../config/config.ts';
import { pricedSource } from '../../config/named-sources.ts';
import { databaseUrl } from '../../config/settings.ts';
import type { Environment } from '../../config/source-config.ts';
import { sourceSettings } from '../../config/source-settings.ts';
import { openStore } from '../../db/connection/connect.ts';
import { postgresProblem } from '../../db/connection/server-problem.ts';
import {
  allSources,
  findProblems,
  isNeeded,
  readSourceFacts,
  type SourceProblem,
  workerProblem,
} from '../../db/problems.ts';
import type { SourceStatus } from '../../db/sources.ts';
import { messageOf } from '../../domain/errors.ts';
import { span } from '../../domain/text/time-span.ts';
import { NO_CREDENTIALS } from '../../sources/credentials/provider.ts';
import { lastWorkerSign } from '../../sync/runs/slots.ts';
import { ago } from '../terminal/output.ts';
import { type Finding, ok, warning } from './finding.ts';
import { type FailedSource, failureRemedy } from './source-remedy.ts';

export async function checkSources(
  config: InspectedConfig,
  env: Environment,
  now: () => Date,
): Promise<Finding[]> {
  const url = databaseUrl(config);
  await using store = openStore({ url, role: 'worker', connections: 2 });
  try {
    const sources = config.named.map((source) => ({
      ...pricedSource(source, config.settings),
      maxAge: source.maxAge,
    }));
    const [sign, facts] = await Promise.all([lastWorkerSign(store.db), readSourceFacts(store.db, sources)]);
    const at = now();
    const statuses = new Map(allSources(sources, facts.status).map((status) => [status.id, status]));
    const problems = Map.groupBy(findProblems(sources, facts, at), ({ source }) => source);
    const notConfigured = facts.status.filter(({ id }) => !sources.some((source) => source.id === id));
    return [
      checkWorker(sign, at),
      ...config.named.flatMap((source) => {
        const status = statuses.get(source.id);
        if (status === undefined) return [];
        const checked = {
          id: source.id,
          maxAge: source.maxAge,
          settings: sourceSettings(source, config.settings, env),
          lacksCredentials: lacksCredentials(config, source.id),
        };
        const own = problems.get(source.id) ?? [];
        return own.length === 0 || status.disabled
          ? withoutProblem(status, isNeeded(status, facts), at)
          : sourceFinding(checked, status, own, at);
      }),
      ...notConfigured.flatMap((status) =>
        (problems.get(status.id) ?? []).map((each) => notConfiguredFinding(each, status, at)),
      ),
    ];
  } catch (error) {
    const why = postgresProblem(error, { setting: 'DATABASE_URL', url });
    // The check of the database reports the problem.
    return [warning('sources', `not checked: ${why ?? messageOf(error)}`, null)];
  }
}

function checkWorker(sign: string | undefined, now: Date): Finding {
  const found = workerProblem(sign, now);
  if (found === undefined) return ok('workers', `one ran ${ago(sign, now)}`);
  const mend = 'start one: fleetbook work, or fleetbook up for everything on one machine';
  return { check: 'workers', verdict: found.severity, found: found.text, mend };
}

function lacksCredentials({ sources }: InspectedConfig, id: string): boolean {
  const source = sources.find((each) => each.id === id);
  if (source === undefined) return false;
  const { credentials } = source.adapter;
  return credentials !== 'none' && credentials !== 'optional-bearer' && source.credentials === NO_CREDENTIALS;
}

interface CheckedSource extends FailedSource {
  readonly maxAge: number;
}

/** A source without a problem may be disabled or retired on purpose, or have rates that no price needs. */
function withoutProblem(status: SourceStatus, isNeeded: boolean, now: Date): Finding {
  const { id, disabled, retiredAt, verifiedAt } = status;
  const check = `source ${id}`;
  if (disabled)
    return warning(
      check,
      `disabled ${ago(disabled.at, now)} by ${disabled.by}`,
      `to read it again: fleetbook source enable ${id}`,
    );
  if (retiredAt !== null)
    return ok(check, `retired ${ago(retiredAt, now)}; its next run publishes its data again`);
  if (!isNeeded) return ok(check, 'cannot be read; no price needs its rates');
  return ok(check, `last read well ${ago(verifiedAt, now)}`);
}

/** The problems that a finding names first; their texts include those of the others. */
const NAMED_FIRST: readonly SourceProblem['kind'][] = [
  'paused',
  'held',
  'never-read',
  'stale',
  'stale-regions',
];

/** Returns one finding about a configured source. It is as severe as the most severe problem. */
function sourceFinding(
  source: CheckedSource,
  status: SourceStatus,
  problems: readonly SourceProblem[],
  now: Date,
): Finding {
  const isSevere = problems.some(({ severity }) => severity === 'problem');
  const rank = ({ kind }: SourceProblem) => {
    const place = NAMED_FIRST.indexOf(kind);
    return place < 0 ? NAMED_FIRST.length : place;
  };
  const [first] = problems.toSorted((one, other) => rank(one) - rank(other));
  if (first === undefined) throw new Error(`${source.id} has no problem`);
  const { found, mend } = foundAndMend(source, status, first, now);
  return { check: `source ${source.id}`, verdict: isSevere ? 'problem' : 'warning', found, mend };
}

function foundAndMend(
  source: CheckedSource,
  { lastEnded, verifiedAt, failedRuns }: SourceStatus,
  { kind, text, since, batch }: SourceProblem,
  now: Date,
): Pick<Finding, 'found' | 'mend'> {
  const { id, maxAge, lacksCredentials } = source;
  const start = `start a worker, or run: fleetbook sync ${id}`;
  const show = `see which and why: fleetbook source show ${id}`;
  const without = lacksCredentials ? ', and it has no credentials' : '';
  const failure = lastEnded?.error ?? null;
  const error = failure === null ? '' : `: ${failure}`;
  switch (kind) {
    case 'paused':
      return {
        found: text.replace('it is ', ''),
        mend: 'Run now in the console runs it at once',
      };
    case 'held':
      return {
        found: 'a batch is held for a decision; readers keep the last good data',
        mend: `see it: fleetbook hold show ${id}. Then decide: fleetbook hold approve ${id} ${batch}, or: fleetbook hold reject ${id} ${batch}`,
      };
    case 'never-read':
      return lastEnded === null
        ? { found: `it never ran${without}`, mend: start }
        : {
            found: `it was never read well${without}; its last run ended as ${lastEnded.outcome}${error}`,
            mend: failureRemedy(failure, source),
          };
    case 'stale':
      return {
        found: `last read well ${ago(verifiedAt, now)}; the limit is ${span(maxAge)}${without}${error}`,
        mend: failure === null ? start : failureRemedy(failure, source),
      };
    case 'failing': {
      const runs =
        failedRuns > 1
          ? `its last ${failedRuns} runs failed, the first ${ago(since, now)}`
          : `its last run ${lastEnded?.outcome === 'interrupted' ? 'was interrupted' : 'failed'}`;
      const mend = `the worker tries again by itself. If it keeps failing, ${failureRemedy(failure, source)}`;
      return { found: `${runs}${error}`, mend };
    }
    case 'stale-regions':
    case 'unread-regions':
      return { found: text, mend: show };
    case 'empty':
      return { found: text, mend: `see which and why: fleetbook rejected ${id}, fleetbook excluded ${id}` };
    case 'not-configured':
      return { found: text, mend: null };
  }
}

function notConfiguredFinding(
  { kind, severity, text, batch }: SourceProblem,
  { id, verifiedAt }: SourceStatus,
  now: Date,
): Finding {
  const check = `source ${id}`;
  if (kind === 'held')
    return {
      check,
      verdict: severity,
      found: `a batch is held for a decision: ${text}`,
      mend: `configure the source again, then decide: fleetbook hold show ${id} ${batch}`,
    };
  const read = verifiedAt === null ? '' : `, as of ${ago(verifiedAt, now)}`;
  const mend = `configure it again, or take its data out of publication: fleetbook source retire ${id}`;
  return { check, verdict: severity, found: `not configured here, and still published${read}`, mend };
}
