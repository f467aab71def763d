import type { FastifyInstance } from 'fastify';
import type { Database } from '../../../db/connection/client.ts';
import { providerNames } from '../../../db/providers.ts';
import { BadInput } from '../../../domain/input.ts';
import { CLUSTER_CHANGES, MACHINE_CHANGES } from '../../../domain/run.ts';
import { SINCE_FORMS, sinceOf } from '../../../domain/text/time-span.ts';
import { choiceOf, found, idOf, textOf, windowOf } from '../../../ops/parameters.ts';
import {
  type ChangePage,
  type ChangeScope,
  changesKeptSince,
  clusterChanges,
  isKept,
  machineChanges,
  type RunDiff,
  type Unlisted,
  unshown,
} from '../queries/changes.ts';
import { type RunRecord, runNeighbours, runRecord, runRequests } from '../queries/runs.ts';
import type { ChangesAnswer, RunAnswer } from './answers.ts';
import type { ConsoleContext } from './context.ts';

const SINCE = '24h';

export function addChanges(api: FastifyInstance, { db }: ConsoleContext): void {
  api.get('/runs/:id', async (request): Promise<RunAnswer> => {
    const id = idOf(request.params, 'id', 'run');
    const run = found(await runRecord(db, id), `there is no run ${id}, or it is deleted`);
    const { query } = request;
    const diff = await diffOf(db, run, query);
    const isSearched = textOf(query, 'q') !== undefined;
    const [neighbours, requests] = await Promise.all([runNeighbours(db, run), runRequests(db, id)]);
    return {
      run,
      requests,
      ...neighbours,
      isKept: isKept(run),
      unshown: isSearched ? 0 : unshown(run, diff),
      diff,
    };
  });
  api.get('/changes', async (request): Promise<ChangesAnswer> => {
    const { query } = request;
    const since = sinceIn(query, new Date());
    const provider = await providerIn(db, query);
    const scope = { since, provider, text: textOf(query, 'q') };
    const of = choiceOf(query, 'of', ['machines', 'clusters']) ?? 'machines';
    // The answer has the counts of machines and clusters, and the rows of one of them.
    const [keptSince, diff, others] = await Promise.all([
      changesKeptSince(db),
      pageOf(db, of, scope, query),
      of === 'machines' ? clusterChanges(db, scope, { limit: 0 }) : machineChanges(db, scope, { limit: 0 }),
    ]);
    return {
      since,
      keptSince,
      isComplete: Date.parse(since) >= Date.parse(keptSince),
      provider: provider ?? null,
      diff,
      otherTotals: others.totals,
    };
  });
}

async function diffOf(db: Database, { kind, id: runId }: RunRecord, query: unknown): Promise<RunDiff> {
  if (kind === 'rates' || kind === 'lifecycles') return { of: kind };
  const scope = { runId, text: textOf(query, 'q') };
  return pageOf(db, kind === 'catalogue' ? 'machines' : 'clusters', scope, query);
}

/** Returns a page of changes. Parameters: `kind`, `order`, `limit`, `offset`. */
async function pageOf(
  db: Database,
  of: 'machines' | 'clusters',
  scope: ChangeScope,
  query: unknown,
): Promise<Exclude<RunDiff, Unlisted>> {
  const page: ChangePage = { ...windowOf(query), order: choiceOf(query, 'order', ['kind', 'biggest']) };
  if (of === 'machines') {
    const kind = choiceOf(query, 'kind', MACHINE_CHANGES);
    return { of, ...(await machineChanges(db, scope, page, kind && [kind])) };
  }
  const kind = choiceOf(query, 'kind', CLUSTER_CHANGES);
  return { of, ...(await clusterChanges(db, scope, page, kind && [kind])) };
}

function sinceIn(query: unknown, now: Date): string {
  const text = textOf(query, 'since') ?? SINCE;
  const since = sinceOf(text, now);
  if (since === 'no time')
    throw new BadInput('since', `must be a time such as ${SINCE_FORMS}; it is "${text}"`);
  if (since === 'ahead') throw new BadInput('since', `is in the future; give a past time; it is "${text}"`);
  return since.toISOString();
}

async function providerIn(db: Database, query: unknown): Promise<string | undefined> {
  const text = textOf(query, 'provider');
  if (text === undefined) return undefined;
  for (const [id, name] of await providerNames(db)) {
    if (String(id) === text || name.toLowerCase() === text.toLowerCase()) return name;
  }
  throw new BadInput('provider', `must be the name or id of a stored provider; it is "${text}"`);
}
