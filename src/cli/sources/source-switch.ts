import type { Command } from 'commander';
import { disableSource } from '../../app/actions/source.ts';
import { FEATURE_CONFIG } from '../../app/feature-config.ts';
import { type NamedSource, readNamedSources } from '../../config/named-sources.ts';
import type { Environment } from '../../config/source-config.ts';
import type { Database, Store } from '../../db/connection/connect.ts';
import { storedSources } from '../../db/sources.ts';
import type { Decider } from '../../domain/operator.ts';
import { nextSlot } from '../../domain/schedule.ts';
import { disablingOf, enableSource } from '../../sync/runs/disabled.ts';
import { cancelRun } from '../../sync/runs/live.ts';
import { UsageFailure } from '../terminal/failure.ts';
import { openDatabase } from '../terminal/open.ts';
import { addChange, type Changing, decider, type Env, SOURCES } from '../terminal/options.ts';
import { disabledBy } from '../terminal/source-notes.ts';
import { eachSource, type SourceResult } from './each-source.ts';

export function defineSwitches(source: Command, env: Env): void {
  addChange(
    source,
    'disable',
    'stop all reads of sources: schedules, watches, commands; published data stays',
  )
    .argument(...SOURCES)
    .action((ids: string[], options) => disableSources(env(), ids, options));
  addChange(source, 'enable', 'read disabled sources again; the latest missed slot runs within a minute')
    .argument(...SOURCES)
    .action((ids: string[], options) => enableSources(env(), ids, options));
  addChange(source, 'cancel', 'cancel the current runs of sources; nothing of them is stored')
    .argument(...SOURCES)
    .action((ids: string[], options) => cancelRuns(env(), ids, options));
}

interface Switching {
  readonly store: Store;
  readonly sources: readonly NamedSource[];
  readonly by: Decider;
}

/** Acts on each source in PostgreSQL alone: workers read there which sources are disabled. */
async function switchEach(
  env: Environment,
  ids: readonly string[],
  options: Changing,
  act: (id: string, switching: Switching) => Promise<SourceResult>,
): Promise<void> {
  const { settings, sources } = readNamedSources(env, FEATURE_CONFIG.sections);
  await using store = openDatabase(env);
  const by = decider({ settings }, options);
  await eachSource(env, ids, options, (id) => act(id, { store, sources, by }));
}

async function disableSources(env: Environment, ids: readonly string[], options: Changing): Promise<void> {
  await switchEach(env, ids, options, async (id, { store, sources, by }) => {
    const done = await disableSource(store.db, sources, id, by);
    if (done.outcome === 'unknown') throw await unknownSource(store.db, sources, id);
    const { disabling } = done;
    return {
      json: { source: id, disabled: disabling, changed: done.outcome === 'disabled' },
      text:
        done.outcome === 'already'
          ? `${id}: is already disabled: ${disabledBy(disabling, new Date())}`
          : `${id}: disabled: no schedule, watch or command reads it. Its published data stays, and readers see its age. To read it again: fleetbook source enable ${id}`,
    };
  });
}

async function enableSources(env: Environment, ids: readonly string[], options: Changing): Promise<void> {
  await switchEach(env, ids, options, async (id, { store, sources, by }) => {
    const before = await disablingOf(store.db, id);
    const changed = await enableSource(store.db, id, by);
    const source = sources.find((each) => each.id === id);
    if (!changed && !source && !(await storedIds(store.db)).includes(id))
      throw await unknownSource(store.db, sources, id);
    const next = source ? nextSlot(source.schedule, new Date()) : null;
    const result = { source: id, changed, disabledBefore: before ?? null, by: by.by, reason: by.reason };
    return { json: { ...result, nextSlot: next }, text: enabledText(id, changed, next) };
  });
}

function enabledText(id: string, changed: boolean, next: string | null): string {
  if (!changed) return `${id}: is not disabled`;
  return next === null
    ? `${id}: enabled; it is not configured here, so only workers with its configuration read it`
    : `${id}: enabled: its latest missed slot runs within a minute, the next one is at ${next}. To read it now: fleetbook sync ${id}`;
}

async function cancelRuns(env: Environment, ids: readonly string[], options: Changing): Promise<void> {
  await switchEach(env, ids, options, async (id, { store, sources, by }) => {
    const done = await cancelRun(store.db, id, undefined, by);
    if (done.outcome === 'unknown' && !sources.some((each) => each.id === id))
      throw await unknownSource(store.db, sources, id);
    const run = done.outcome === 'cancelled' ? done.run : null;
    return {
      json: { source: id, run, by: by.by, reason: by.reason ?? null },
      text:
        run === null
          ? `${id}: has no current run`
          : `${id}: run ${run} is cancelled: nothing of it is stored, and it is not retried. The next slot runs as usual`,
    };
  });
}

export async function storedIds(db: Database): Promise<string[]> {
  const stored = await storedSources(db);
  return stored.map(({ id }) => id);
}

async function unknownSource(
  db: Database,
  sources: readonly NamedSource[],
  id: string,
): Promise<UsageFailure> {
  const known = new Set([...sources.map((each) => each.id), ...(await storedIds(db))]);
  return new UsageFailure(
    `there is no source "${id}"; known sources: ${[...known].sort().join(', ') || 'none'}`,
  );
}
