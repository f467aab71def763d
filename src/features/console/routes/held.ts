import type { FastifyInstance, FastifyRequest } from 'fastify';
import { approveBatch, previewHeld, rejectBatch, undoDecision } from '../../../app/actions/batch.ts';
import { heldDocument } from '../../../app/actions/held-document.ts';
import { reasoned } from '../../../app/actions/inputs.ts';
import type { SourceConfig } from '../../../config/config.ts';
import { type BatchRecord, batchRecord, batchRecords } from '../../../db/held-batches.ts';
import type { Decider } from '../../../domain/operator.ts';
import { deciderOf } from '../../../ops/access.ts';
import {
  Conflict,
  choiceOf,
  found,
  idOf,
  NotFound,
  neededText,
  readBody,
  textOf,
  windowOf,
} from '../../../ops/parameters.ts';
import { sharedByKey } from '../../../ops/shared-reads.ts';
import { batchTrail } from '../queries/batches.ts';
import type {
  Decided,
  HeldChanges,
  HeldMachines,
  HeldPreview,
  HeldRow,
  ReadersAnswer,
  ShownBatch,
} from './answers.ts';
import type { ConsoleContext } from './context.ts';

const LISTED = 200;
/** Rows of each kind of change that an operator can search. A batch may have millions. */
const SEARCHED = 20_000;
/** Cache time of a preview (ms): the comparison of a large batch takes seconds, and pages and searches share it. */
const PREVIEW_MS = 30_000;
/** Previews in memory: operators view different batches at the same time. */
const PREVIEWS = 4;
const KINDS = ['gone', 'excluded', 'price', 'shape', 'facts', 'published', 'changed', 'new'] as const;

export function addHeld(api: FastifyInstance, { db, config, openWriter, changed }: ConsoleContext): void {
  const sourceOf = ({ id, sourceId }: BatchRecord): SourceConfig => {
    const source = config.sources.find((each) => each.id === sourceId);
    if (source) return source;
    throw new Conflict(
      `batch ${id} is of ${sourceId}, which is not configured here; configure it to preview or decide the batch`,
    );
  };
  const previews = sharedByKey<number, HeldPreview>(PREVIEW_MS, PREVIEWS);
  const previewOf = (batch: BatchRecord) =>
    previews.get(batch.id, async () =>
      previewHeld(config, openWriter().store, sourceOf(batch), batch.id, SEARCHED),
    );
  const known = async (request: FastifyRequest): Promise<BatchRecord> => {
    const id = idOf(request.params, 'batch', 'batch');
    return found(await batchRecord(db, id), `there is no batch ${id}; a younger batch may have replaced it`);
  };
  /** Adds a route that decides a batch. @param decide returns undefined if another decision or a run came first */
  const addDecision = (
    name: string,
    decide: (batch: BatchRecord, decider: Decider) => Promise<Omit<Decided, 'batch'> | undefined>,
  ) =>
    api.post(`/held/:batch/${name}`, async (request): Promise<Decided> => {
      const decider = deciderOf(request, readBody(reasoned, request.body).reason);
      const batch = await known(request);
      const decided = await decide(batch, decider);
      if (!decided)
        throw new Conflict(
          'nothing has changed: a run has begun, or another operator has decided; reload this page',
        );
      previews.clear();
      await changed();
      return { batch: batch.id, ...decided };
    });

  api.get('/held', () => batchRecords(db, LISTED));
  api.get('/held/:batch', async (request): Promise<ShownBatch> => {
    const batch = await known(request);
    const trail = await batchTrail(db, batch.id);
    if (batch.status !== 'pending') return { ...batch, trail, changes: null };
    return { ...batch, trail, changes: changesPage(await previewOf(batch), request.query) };
  });
  api.get('/held/:batch/readers', async (request): Promise<ReadersAnswer> => {
    const batch = waiting(await known(request));
    const { query } = request;
    const [name, region] = [neededText(query, 'machine'), neededText(query, 'region')];
    const preview = await previewOf(batch);
    if (preview.kind !== 'catalogue')
      throw new NotFound(`batch ${batch.id} is of ${preview.kind}; only machines have a preview`);
    const row = found(
      preview.rows.find((each) => each.name === name && each.regionCode === region),
      `batch ${batch.id} changes no machine ${name} in ${region} that readers see`,
    );
    const source = sourceOf(batch);
    if (source.kind !== 'catalogue') throw new Conflict(`${source.id} is no catalogue any more`);
    return heldDocument(openWriter().store, source, preview, row);
  });
  addDecision('approve', async (batch, decider) => {
    const stored = await approveBatch(config, openWriter(), sourceOf(waiting(batch)), batch.id, decider);
    return stored && { decision: 'approved', ...stored };
  });
  addDecision('reject', async (batch, decider) => {
    const isDone = await rejectBatch(openWriter().store, waiting(batch).id, decider);
    return isDone ? { decision: 'rejected', counts: null, published: null } : undefined;
  });
  addDecision('undo', async (batch, decider) => {
    if (!batch.reversible)
      throw new Conflict(
        'this decision cannot be undone: a later run has stored or held a batch, or there is no decision',
      );
    const undone = await undoDecision(config, openWriter(), batch, () => sourceOf(batch), decider);
    return undone && { decision: 'undone', published: null, ...undone };
  });
}

function waiting(batch: BatchRecord): BatchRecord {
  if (batch.status === 'pending') return batch;
  throw new Conflict(`nothing has changed: batch ${batch.id} is ${batch.status} already; reload this page`);
}

export function changesPage(preview: HeldPreview, query: unknown): HeldChanges {
  const search = textOf(query, 'q')?.toLowerCase();
  const change = choiceOf(query, 'change', KINDS);
  const { limit, offset } = windowOf(query);
  const fits = (row: PreviewedRow) =>
    (change === undefined || row.change === change) && (search === undefined || matches(row, search));
  const rows: readonly HeldRow[] =
    preview.kind === 'catalogue' ? byChange(preview.rows.filter(fits)) : preview.rows.filter(fits);
  const totals: Readonly<Record<string, number>> = preview.totals;
  return {
    kind: preview.kind,
    currency: preview.kind === 'catalogue' ? preview.currency : null,
    diff: preview.diff,
    reasons: preview.reasons,
    totals,
    unseen: preview.kind === 'catalogue' ? preview.unseen : 0,
    total: rows.length,
    rows: rows.slice(offset, offset + limit),
    isCut: Object.values(totals).reduce((sum, each) => sum + each, 0) > preview.rows.length,
  };
}

type PreviewedRow = HeldPreview['rows'][number];
type PreviewedMachine = Extract<HeldPreview, { kind: 'catalogue' }>['rows'][number];

/** Joins the regions where a machine changes in the same way. Each row stands where its first region stood. */
function byChange(machines: readonly PreviewedMachine[]): HeldMachines[] {
  const groups = new Map<string, Omit<HeldMachines, 'regions'> & { regions: string[] }>();
  for (const { regionCode, ...row } of machines) {
    const key = JSON.stringify([row.change, row.name, row.oldPrice, row.newPrice, row.shape, row.detail]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { ...row, regions: [regionCode] });
    else group.regions.push(regionCode);
  }
  return [...groups.values()];
}

function matches(row: PreviewedRow, search: string): boolean {
  const words = 'regionCode' in row ? [row.name, row.regionCode] : [row.name, row.organization, row.key];
  return words.some((word) => word.toLowerCase().includes(search));
}
