/** Disables sources, enables them again, and cancels their runs. */

import { disableSource } from '../../app/actions/source.ts';
import { FEATURE_CONFIG } from '../../app/feature-settings.ts';
import { type NamedSource, readNamedSources } from '../../config/named-sources.ts';
import { databaseUrls } from '../../config/settings.ts';
import type { Environment } from '../../config/source-config.ts';
import { openStore, type Store } from '../../db/connection/connect.ts';
import type { sourceStatus } from '../../db/sources.ts';
import { disablingOf, enableSource } from '../../db/sync/disabled.ts';
import { cancelRun } from '../../db/sync/live-runs.ts';
import type { Disabling } from '../../domain/disabled-source.ts';
import type { Decider } from '../../domain/operator.ts';
import { nextSlot } from '../../domain/schedule.ts';
import { type DeciderOptions, decider } from '../terminal/arguments.ts';
import { UsageFailure } from '../terminal/failure.ts';
import { ago } from '../terminal/table.ts';
import { eachSource, type SourceResult } from './each-source.ts';

export interface SwitchOptions extends DeciderOptions {
  readonly json?: boolean;
}

interface Switching {
  readonly store: Store;
  readonly sources: readonly NamedSource[];
  readonly by: Decider;
}

/** Acts on each source with the worker's role. Redis has no part in it: workers see in the database what is disabled. */
async function switchEach(
  env: Environment,
  ids: readonly string[],
  options: SwitchOptions,
  act: (id: string, switching: Switching) => Promise<SourceResult>,
): Promise<void> {
  const { settings, sources } = readNamedSources(env, FEATURE_CONFIG.sections);
  await using store = openStore({ ...databaseUrls({ settings }), role: 'worker', connections: 1 });
  const by = decider({ settings }, options);
  await eachSource(env, ids, options, (id) => act(id, { store, sources, by }));
}

export async function disableSourceCommand(
  env: Environment,
  ids: readonly string[],
  options: SwitchOptions,
): Promise<void> {
  await switchEach(env, ids, options, async (id, { store, sources, by }) => {
    const done = await disableSource(store.db, sources, id, by);
    if (done.outcome === 'unknown') throw await unknownSource(store.sql, sources, id);
    const { disabling } = done;
    return {
      json: { source: id, disabled: disabling, changed: done.outcome === 'disabled' },
      text:
        done.outcome === 'already'
          ? `${id}: was disabled already: ${byWhom(disabling)}`
          : `${id}: disabled: no schedule, watch or command reads it from now on. What it has published stays, and readers see its age. To read it again: fleetbook source enable ${id}`,
    };
  });
}

/** `2 h ago by ada@desk (prices are wrong)` */
function byWhom({ at, by, reason }: Disabling): string {
  return `${ago(at, new Date())} by ${by}${reason === null ? '' : ` (${reason})`}`;
}

export async function enableSourceCommand(
  env: Environment,
  ids: readonly string[],
  options: SwitchOptions,
): Promise<void> {
  await switchEach(env, ids, options, async (id, { store, sources, by }) => {
    const before = await disablingOf(store.db, id);
    const changed = await enableSource(store.db, id, by);
    const source = sources.find((each) => each.id === id);
    if (!changed && !source && !(await isStored(store.sql, id)))
      throw await unknownSource(store.sql, sources, id);
    const nextSlotAt = source ? nextSlot(source.schedule, new Date()) : null;
    return {
      json: {
        source: id,
        changed,
        disabledBefore: before ?? null,
        by: by.by,
        reason: by.reason,
        nextSlot: nextSlotAt,
      },
      text: enabledText(id, changed, nextSlotAt),
    };
  });
}

function enabledText(id: string, changed: boolean, next: string | null): string {
  if (!changed) return `${id}: is not disabled`;
  return next === null
    ? `${id}: enabled; it is not configured here, so that only workers that have it read it`
    : `${id}: enabled: its latest missed slot runs within a minute, the next one is at ${next}. To read it now: fleetbook sync ${id}`;
}

/** Cancels the run of each source that is under way, in whichever process it is. */
export async function cancelRunCommand(
  env: Environment,
  ids: readonly string[],
  options: SwitchOptions,
): Promise<void> {
  await switchEach(env, ids, options, async (id, { store, sources, by }) => {
    const done = await cancelRun(store.db, id, undefined, by);
    if (done.outcome === 'unknown' && !sources.some((each) => each.id === id))
      throw await unknownSource(store.sql, sources, id);
    const run = done.outcome === 'cancelled' ? done.run : null;
    return {
      json: { source: id, run, by: by.by, reason: by.reason ?? null },
      text:
        run === null
          ? `${id}: no run is under way`
          : `${id}: run ${run} is cancelled: nothing of it is stored, and no attempt of it follows. The next slot runs as usual`,
    };
  });
}

type Sql = Parameters<typeof sourceStatus>[0];

async function isStored(sql: Sql, id: string): Promise<boolean> {
  const [row] = await sql`select from sources where id = ${id}`;
  return row !== undefined;
}

async function unknownSource(sql: Sql, sources: readonly NamedSource[], id: string): Promise<UsageFailure> {
  const stored = await sql<{ id: string }[]>`select id from sources`;
  const known = new Set([...sources.map((each) => each.id), ...stored.map((each) => each.id)]);
  return new UsageFailure(`there is no source "${id}"; known are ${[...known].sort().join(', ') || 'none'}`);
}
