import type { FastifyInstance } from 'fastify';
import { givenDecider } from '../../../app/actions/inputs.ts';
import { requestRun } from '../../../app/actions/source.ts';
import { quarantinedRows } from '../../../db/quarantine.ts';
import { BadInput } from '../../../domain/input.ts';
import { EXCLUSION_MEANINGS } from '../../../domain/machine.ts';
import { groupReasons, quarantineKey } from '../../../domain/rejected-rows.ts';
import { nextSlots, scheduleInWords } from '../../../domain/schedule.ts';
import { readInstant } from '../../../domain/text/time-span.ts';
import { deciderOf } from '../../../ops/access.ts';
import { Conflict, NotFound, readBody, textOf, windowOf } from '../../../ops/parameters.ts';
import { excludedMachines } from '../queries/machines.ts';
import { sourceTimeline } from '../queries/timeline.ts';
import type {
  ExcludedAnswer,
  RejectedAnswer,
  RequestedRunAnswer,
  SourceAnswer,
  TimelineAnswer,
} from './answers.ts';
import type { ConsoleContext } from './context.ts';
import { freshness, judgeSources } from './overview.ts';

const SLOTS = 5;

export function addSources(api: FastifyInstance, context: ConsoleContext): void {
  const { db, sources, stored, openWriter } = context;
  const idOfSource = (params: unknown) => String((params as { id: string }).id);

  api.get('/sources/:id', async (request): Promise<SourceAnswer> => {
    const id = idOfSource(request.params);
    const facts = await stored();
    const at = new Date();
    const judged = judgeSources(sources, facts, at);
    const source = judged.sources.find((each) => each.id === id);
    if (!source) throw new NotFound(`there is no source ${id}`);
    const config = sources.find((each) => each.id === id);
    const regions = facts.status.find((each) => each.id === id)?.regions ?? [];
    return {
      source,
      problems: judged.problems.filter((problem) => problem.source === id),
      regions: regions.map((region) => ({ ...region, ...freshness(region.verifiedAt, config, at) })),
      scheduleInWords: config ? scheduleInWords(config.schedule) : null,
      nextSlots: config && source.disabled === null ? nextSlots(config.schedule, at, SLOTS) : [],
      canRun: config !== undefined,
    };
  });
  api.get('/sources/:id/timeline', async (request): Promise<TimelineAnswer> => {
    const { query } = request;
    const { limit } = windowOf(query);
    const before = instantOf(query, 'before');
    // One more row than the page shows whether there are older ones.
    const entries = await sourceTimeline(db, idOfSource(request.params), { before, limit: limit + 1 });
    return { entries: entries.slice(0, limit), hasOlder: entries.length > limit };
  });
  api.get('/sources/:id/rejected', async (request): Promise<RejectedAnswer> => {
    const id = idOfSource(request.params);
    const { query } = request;
    const { limit, offset } = windowOf(query);
    const search = textOf(query, 'q')?.toLowerCase();
    const all = await quarantinedRows(db, id);
    const found = all.filter(
      (row) =>
        search === undefined ||
        `${quarantineKey(row)} ${row.code} ${row.reason}`.toLowerCase().includes(search),
    );
    return {
      source: id,
      total: found.length,
      reasons: groupReasons(all),
      rows: found.slice(offset, offset + limit),
    };
  });
  api.get('/sources/:id/excluded', async (request): Promise<ExcludedAnswer> => {
    const id = idOfSource(request.params);
    const { limit, offset } = windowOf(request.query);
    const { total, reasons, rows } = await excludedMachines(db, id, offset + limit);
    return {
      source: id,
      total,
      reasons: reasons.map((each) => ({ ...each, meaning: EXCLUSION_MEANINGS[each.reason] ?? each.reason })),
      rows: rows.slice(offset),
    };
  });
  api.post('/sources/:id/run', async (request): Promise<RequestedRunAnswer> => {
    const id = idOfSource(request.params);
    const { disabled } = (await stored()).status.find((each) => each.id === id) ?? {};
    if (disabled) throw new Conflict(`${id} is disabled, by ${disabled.by}; enable it first`);
    const decider = deciderOf(request, readBody(givenDecider, request.body).reason);
    const source = sources.find((each) => each.id === id);
    if (!source) throw new NotFound(`there is no source ${id} in the configuration`);
    return { source: id, ...(await requestRun(openWriter().store.db, source, decider)) };
  });
}

function instantOf(query: unknown, name: string): string | undefined {
  const text = textOf(query, name);
  if (text === undefined) return undefined;
  const isInstant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z$/.test(text);
  if (isInstant && readInstant(text)) return text;
  throw new BadInput(name, `must be an instant such as 2026-01-31T12:00:00Z; it is "${text}"`);
}
