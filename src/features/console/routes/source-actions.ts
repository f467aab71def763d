/** What an operator does with a source as a whole: disables it, enables it, cancels its run, takes it out of publication. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Disabled } from '../../../db/sync/disabled.ts';
import type { Cancelled } from '../../../db/sync/live-runs.ts';
import type { Retirement } from '../../../db/sync/retire.ts';
import type { Decider } from '../../../domain/operator.ts';
import { deciderOf } from '../../operators/sign-in/roles.ts';
import type { CancelledRun, Retired, RetirementAnswer, ShownSetting, Switched } from './api.ts';
import { anyFieldOf } from './fields.ts';
import { BadRequest, Conflict, NotFound, reasonOf } from './parameters.ts';

/** The functions behind `fleetbook source`. */
export interface SourceActions {
  /** Every setting of a source, secrets masked; none of one that is not configured here. */
  settings(sourceId: string): readonly ShownSetting[];
  disable(sourceId: string, decider: Decider): Promise<Disabled>;
  /** False for one that is not disabled. */
  enable(sourceId: string, decider: Decider): Promise<boolean>;
  /** Cancels a run if it is the one that is under way. */
  cancel(sourceId: string, run: number, decider: Decider): Promise<Cancelled>;
  /** What would go out of publication; undefined for a source that was never known. */
  retirement(sourceId: string): Promise<Retirement | undefined>;
  /** `published` is false while the cache is away. */
  retire(
    sourceId: string,
    decider: Decider,
  ): Promise<{ readonly gone: Retirement; readonly published: boolean } | undefined>;
}

export interface SourceActionsDependencies {
  readonly actions: SourceActions;
  /** Those that are configured: their next run would bring back what is retired. */
  readonly configured: ReadonlySet<string>;
  /** Called after an action. */
  changed(): Promise<void>;
}

export function addSourceActions(api: FastifyInstance, deps: SourceActionsDependencies): void {
  const { actions, configured, changed } = deps;
  const idOf = (request: FastifyRequest) => String((request.params as { id: string }).id);
  const known = async (id: string): Promise<Retirement> => {
    const found = await actions.retirement(id);
    if (!found) throw new NotFound(`there is no source ${id}`);
    return found;
  };

  api.get('/sources/:id/settings', (request): readonly ShownSetting[] => actions.settings(idOf(request)));
  api.post('/sources/:id/disable', async (request): Promise<Switched> => {
    const id = idOf(request);
    const decider = deciderOf(request, reasonOf(request.body));
    const done = await actions.disable(id, decider);
    if (done.outcome === 'unknown') throw new NotFound(`there is no source ${id}`);
    if (done.outcome === 'already')
      throw new Conflict(`${id} was disabled already, by ${done.disabling.by}; load this page again`);
    await changed();
    return { source: id, disabled: done.disabling };
  });
  api.post('/sources/:id/enable', async (request): Promise<Switched> => {
    const id = idOf(request);
    const decider = deciderOf(request, reasonOf(request.body));
    if (!(await actions.enable(id, decider)))
      throw new Conflict(`${id} is not disabled; load this page again`);
    await changed();
    return { source: id, disabled: null };
  });
  api.post('/sources/:id/cancel', async (request): Promise<CancelledRun> => {
    const id = idOf(request);
    const decider = deciderOf(request, reasonOf(request.body));
    const run = anyFieldOf(request.body, 'run');
    if (typeof run !== 'number' || !Number.isSafeInteger(run))
      throw new BadRequest('run', 'must be the number of the run');
    const { outcome } = await actions.cancel(id, run, decider);
    if (outcome === 'unknown') throw new NotFound(`there is no source ${id}`);
    if (outcome === 'idle') throw new Conflict(`run ${run} of ${id} is not under way; load this page again`);
    await changed();
    return { source: id, run };
  });
  api.get('/sources/:id/retirement', async (request): Promise<RetirementAnswer> => {
    const id = idOf(request);
    return { ...(await known(id)), canRetire: !configured.has(id) };
  });
  api.post('/sources/:id/retire', async (request): Promise<Retired> => {
    const id = idOf(request);
    const decider = deciderOf(request, reasonOf(request.body));
    const { confirm } = request.body as { confirm?: unknown };
    if (confirm !== id)
      throw new BadRequest('confirm', `must be the id of the source, ${JSON.stringify(id)}, typed once more`);
    if (configured.has(id)) {
      throw new Conflict(
        `${id} is configured: its next run would bring everything back; take it out of the configuration of every worker first, and restart them`,
      );
    }
    await known(id);
    const done = await actions.retire(id, decider);
    if (!done) throw new NotFound(`there is no source ${id} any more`);
    await changed();
    return { source: id, places: done.gone.places, rates: done.gone.rates, published: done.published };
  });
}
