/** Answers about the ends of versions, from PostgreSQL. Its methods reject with `Unavailable` while it is away. */
import { databaseOn, inOrganization } from '../../db/connection/client.ts';
import { type RunningCluster, runningClusters, storedLifecycles } from '../../db/lifecycles.ts';
import { Slice } from '../../domain/event-loop.ts';
import {
  type Cycle,
  dayOf,
  isEnding,
  type Lifecycle,
  lifecycleOf,
  nameOfStater,
  PRODUCTS,
  urgency,
} from '../../domain/lifecycle.ts';
import { readCursor, writeCursor } from '../../http/protocol/page-cursor.ts';
import { readMarks } from '../../market/market.ts';
import type { Answer } from '../../snapshot/document/answer.ts';
import { jsonBody } from '../../snapshot/document/body.ts';
import type { Documents } from '../../snapshot/read/documents.ts';
import type { ClusterDetailsDocument, LifecycleDocument } from './schemas.ts';

export interface LifecycleOptions {
  readonly documents: Pick<Documents, 'postgres'>;
  /** Milliseconds since the epoch: today is by it. */
  readonly now?: (() => number) | undefined;
}

export interface LifecycleQuestion {
  /** Days from today. */
  readonly within: number;
  readonly engine: readonly string[] | undefined;
}

export interface PageOfClusters {
  readonly limit: number;
  readonly cursor: string | undefined;
}

export type LifecycleAnswers = ReturnType<typeof lifecycleAnswers>;

/** The text of a cursor: the urgency of a cluster and its slug. */
const POSITION_FORM = /^[0-3] .+$/su;

interface Judged {
  readonly cluster: RunningCluster;
  readonly lifecycle: Lifecycle;
  /** Orders clusters: the most urgent first. */
  readonly place: string;
}

/** The organization of each method is the token's. */
export function lifecycleAnswers({ documents, now = Date.now }: LifecycleOptions) {
  /** Reads clusters with their lifecycles. All statements see the same state of the database. */
  async function read(organizationId: number, slug?: string) {
    const today = dayOf(new Date(now()));
    const { clusters, stored, marks } = await documents.postgres(
      (client) =>
        inOrganization(databaseOn(client), organizationId, async (db) => {
          const found = await runningClusters(db, organizationId, slug);
          const sources = [...new Set(found.map(({ sourceId }) => sourceId))];
          return {
            clusters: found,
            stored: await storedLifecycles(db),
            marks: await readMarks(db, organizationId, { sources, regions: [] }),
          };
        }),
      { organizationId },
    );
    const judged: Judged[] = [];
    const slice = new Slice();
    for (const cluster of clusters) {
      if (slice.isOver) await slice.next();
      const lifecycle = lifecycleOf(cluster, stored.cycles, today);
      judged.push({ cluster, lifecycle, place: `${urgency(lifecycle)} ${cluster.slug}` });
    }
    return { judged, today, readAt: stored.readAt, asOf: marks.asOf ?? undefined };
  }

  return {
    /** Returns undefined for an unknown slug. */
    async details(organizationId: number, slug: string): Promise<Answer | undefined> {
      const { judged, asOf } = await read(organizationId, slug);
      return judged[0] && answer(detailsDocument(judged[0]), asOf);
    },

    /** Returns undefined for a cursor of another question. */
    async list(
      organizationId: number,
      question: LifecycleQuestion,
      { limit, cursor }: PageOfClusters,
    ): Promise<Answer | undefined> {
      const after = cursor === undefined ? '' : readCursor(question, cursor, 0, POSITION_FORM)?.text;
      if (after === undefined) return undefined;
      const { judged, today, readAt, asOf } = await read(organizationId);
      const { within, engine } = question;
      const totals = { clusters: 0, ended: 0, ending: 0, unknown: 0 };
      const listed: Judged[] = [];
      const slice = new Slice();
      for (const one of judged) {
        if (slice.isOver) await slice.next();
        const { cluster, lifecycle, place } = one;
        if (engine !== undefined && !engine.includes(cluster.engine ?? '')) continue;
        const isSoon = isEnding(lifecycle, within);
        totals.clusters += 1;
        if (lifecycle.state !== 'supported') totals[lifecycle.state] += 1;
        else if (isSoon) totals.ending += 1;
        if ((isSoon || lifecycle.state === 'unknown') && place > after) insertFirst(listed, one, limit + 1);
      }
      const page = listed.slice(0, limit);
      const last = listed.length > limit ? page.at(-1) : undefined;
      const document: LifecycleDocument = {
        within,
        today,
        lifecycles_read_at: readAt,
        totals,
        clusters: page.map(detailsDocument),
        next: last ? writeCursor(question, [], last.place) : null,
      };
      return answer(document, asOf);
    },
  };
}

/** Inserts in the order of places, and keeps the first ones: a sort of all clusters would be one long turn of the event loop. */
function insertFirst(first: Judged[], one: Judged, most: number): void {
  let [low, high] = [0, first.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((first[middle] as Judged).place < one.place) low = middle + 1;
    else high = middle;
  }
  if (low === most) return;
  first.splice(low, 0, one);
  if (first.length > most) first.pop();
}

function answer(document: object, asOf: string | undefined): Answer {
  return { body: jsonBody(document), tier: 'postgres', asOf, currency: undefined };
}

function detailsDocument({ cluster, lifecycle }: Judged): ClusterDetailsDocument {
  const { slug, name, status, provider, region, engine, version } = cluster;
  const { state, endOfLife, daysLeft, statedBy, cycle, reason } = lifecycle;
  return {
    cluster: { slug, name, status, provider, region },
    engine,
    version,
    state,
    end_of_life: endOfLife,
    days_left: daysLeft,
    stated_by: nameOfStater(statedBy, provider.name),
    cycle: cycle && cycleDocument(cycle),
    reason,
  };
}

function cycleDocument(cycle: Cycle): ClusterDetailsDocument['cycle'] {
  return {
    name: cycle.name,
    released_on: cycle.releasedOn,
    active_until: cycle.activeUntil,
    end_of_life: cycle.endOfLife,
    extended_until: cycle.extendedUntil,
    latest: cycle.latest,
    link: `https://endoflife.date/${PRODUCTS[cycle.engine]}`,
  };
}
