import type { FastifyInstance, FastifyRequest } from 'fastify';
import { cancelledRun, reasoned, retiredSource } from '../../../app/actions/inputs.ts';
import { disableSource, retireSource } from '../../../app/actions/source.ts';
import { inspectConfig } from '../../../config/config.ts';
import { sourceSettings } from '../../../config/source-settings.ts';
import type { Decider } from '../../../domain/operator.ts';
import { deciderOf } from '../../../ops/access.ts';
import { Conflict, found, NotFound, readBody } from '../../../ops/parameters.ts';
import { enableSource } from '../../../sync/runs/disabled.ts';
import { cancelRun } from '../../../sync/runs/live.ts';
import { previewRetirement, type Retirement } from '../../../sync/runs/retire-source.ts';
import type { CancelledRun, Retired, RetirementAnswer, ShownSetting, Switched } from './answers.ts';
import type { ConsoleContext } from './context.ts';

export function addSourceActions(api: FastifyInstance, context: ConsoleContext): void {
  const { config, env, openWriter, changed } = context;
  const { settings, named } = inspectConfig(env);
  const idOf = (request: FastifyRequest) => String((request.params as { id: string }).id);
  const known = async (id: string): Promise<Retirement> =>
    found(await previewRetirement(openWriter().store.db, id), `there is no source ${id}`);

  /** Adds a route that changes a source, and notifies open pages. */
  const addAction = <T>(name: string, change: (id: string, decider: Decider, body: unknown) => Promise<T>) =>
    api.post(`/sources/:id/${name}`, async (request) => {
      const { reason } = readBody(reasoned, request.body);
      const done = await change(idOf(request), deciderOf(request, reason), request.body);
      await changed();
      return done;
    });

  api.get('/sources/:id/settings', (request): readonly ShownSetting[] => {
    const source = named.find(({ id }) => id === idOf(request));
    return source ? sourceSettings(source, settings, env) : [];
  });
  addAction('disable', async (id, decider): Promise<Switched> => {
    const done = await disableSource(openWriter().store.db, config.sources, id, decider);
    if (done.outcome === 'unknown') throw new NotFound(`there is no source ${id}`);
    if (done.outcome === 'already')
      throw new Conflict(`${id} was disabled already, by ${done.disabling.by}; reload this page`);
    return { source: id, disabled: done.disabling };
  });
  addAction('enable', async (id, decider): Promise<Switched> => {
    if (!(await enableSource(openWriter().store.db, id, decider)))
      throw new Conflict(`${id} is not disabled; reload this page`);
    return { source: id, disabled: null };
  });
  addAction('cancel', async (id, decider, body): Promise<CancelledRun> => {
    const { run } = readBody(cancelledRun, body);
    const { outcome } = await cancelRun(openWriter().store.db, id, run, decider);
    if (outcome === 'unknown') throw new NotFound(`there is no source ${id}`);
    if (outcome === 'idle') throw new Conflict(`run ${run} of ${id} is not running; reload this page`);
    return { source: id, run };
  });
  api.get('/sources/:id/retirement', (request): Promise<RetirementAnswer> => known(idOf(request)));
  addAction('retire', async (id, decider, body): Promise<Retired> => {
    readBody(retiredSource(id), body);
    if (config.sources.some((source) => source.id === id)) {
      throw new Conflict(
        `${id} is configured: its next run would publish everything again; remove it from the configuration of every worker first, and restart the workers`,
      );
    }
    await known(id);
    const done = await retireSource(openWriter(), id, decider);
    const { gone, published } = found(done, `there is no source ${id} any more`);
    return { source: id, places: gone.places, rates: gone.rates, published };
  });
}
