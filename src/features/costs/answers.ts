/** Answers about the costs of an organization's clusters, from PostgreSQL. Its methods reject with `Unavailable` while it is away. */
import { LRUCache } from 'lru-cache';
import { databaseOn, inOrganization } from '../../db/connection/client.ts';
import { nextTurn } from '../../domain/event-loop.ts';
import { readCursor } from '../../http/protocol/page-cursor.ts';
import { Problem } from '../../http/protocol/problem.ts';
import {
  bookFor,
  candidatesOfIndex,
  cheaperInRegion,
  comparedMachine,
  type Marks,
  type OrganizationCosts,
  type OrganizationInputs,
  organizationCosts,
  type PriceBooks,
  type PriceQuestion,
  readAgain,
  readOneCluster,
  readOrganization,
  readPriceHistory,
  type SearchState,
  type StoredCluster,
  type WantedSaving,
} from '../../market/market.ts';
import { type Answer, type MaybePromise, type Tier, Unavailable } from '../../snapshot/document/answer.ts';
import { jsonBody, longBody } from '../../snapshot/document/body.ts';
import type { Documents } from '../../snapshot/read/documents.ts';
import {
  alternativesDocument,
  costDocument,
  costsDocument,
  identityOf,
  POSITION_FORM,
  positionIn,
  shownCost,
} from './documents.ts';
import { costHistory, type TimeSpan, withMicroseconds } from './history.ts';
import type { AlternativesDocument } from './schemas.ts';

export interface CostsOptions {
  readonly documents: Pick<Documents, 'postgres'>;
  readonly catalogue: { get(): MaybePromise<SearchState> };
  readonly books: Pick<PriceBooks, 'priced'>;
  /** Bytes for the costs of organizations. */
  readonly memoryLimit: number;
  /** Milliseconds since the epoch: entries of price books begin and end by it. */
  readonly now?: (() => number) | undefined;
}

export type CostsReader = ReturnType<typeof costsReader>;

/** The costs of an organization by one question, and what they were calculated from. */
interface Calculated {
  readonly inputs: OrganizationInputs;
  readonly costs: OrganizationCosts;
  /** When the costs were calculated (ms). The clock may go back behind it. */
  readonly at: number;
}

interface CurrentCosts {
  readonly costs: OrganizationCosts;
  readonly marks: Marks;
  readonly tier: Tier;
}

/**
 * The bytes of a cluster with one disk and its cost, and of a machine. Measured with `--expose-gc` on Node 26: 10,000 clusters on
 * 100, 2,000 and 10,000 machines take 3.8, 6.6 and 16.9 MB.
 */
const BYTES_PER_CLUSTER = 400;
const BYTES_PER_MACHINE = 1400;

export interface PageOfCosts {
  readonly limit: number;
  readonly cursor: string | undefined;
}

/** The organization of each method is the token's. A method returns undefined for an unknown slug. */
export function costsReader({ documents, catalogue, books, memoryLimit, now = Date.now }: CostsOptions) {
  // An organization that exceeds the limit is cached alone.
  const calculated = new LRUCache<string, Calculated>({
    maxSize: Math.max(1, Math.floor(memoryLimit)),
    sizeCalculation: ({ inputs: { clusters, machines } }) =>
      Math.min(
        Math.max(1, Math.floor(memoryLimit)),
        1 + clusters.length * BYTES_PER_CLUSTER + machines.size * BYTES_PER_MACHINE,
      ),
  });
  const flights = new Map<string, Promise<CurrentCosts>>();

  const read = <T>(organizationId: number, reads: Parameters<typeof inOrganization<T>>[2]) =>
    documents.postgres((client) => inOrganization(databaseOn(client), organizationId, reads), {
      organizationId,
    });

  /** Returns the costs of now. They are calculated again if a version they depend on has changed. */
  async function currentCosts(organizationId: number, question: PriceQuestion): Promise<CurrentCosts> {
    const key = [organizationId, question.term, question.prices, question.at].join(' ');
    const flight =
      flights.get(key) ?? refreshed(key, organizationId, question).finally(() => flights.delete(key));
    flights.set(key, flight);
    return flight;
  }

  async function refreshed(
    key: string,
    organizationId: number,
    question: PriceQuestion,
  ): Promise<CurrentCosts> {
    const before = calculated.get(key);
    const at = now();
    const { inputs, marks } = await read(organizationId, async (db) => {
      if (before) return readAgain(db, organizationId, before.inputs, at);
      const first = await readOrganization(db, organizationId, question, at);
      return { inputs: first, marks: first.marks };
    });
    if (before?.inputs === inputs && before.at <= at && at < before.costs.until)
      return { costs: before.costs, marks, tier: 'memory' };
    const costs = await organizationCosts(inputs, question, at);
    calculated.set(key, { inputs, costs, at });
    return { costs, marks, tier: 'postgres' };
  }

  return {
    async cost(
      organizationId: number,
      slug: string,
      question: PriceQuestion,
    ): Promise<Answer | Problem | undefined> {
      const found = await read(organizationId, (db) =>
        readOneCluster(db, organizationId, { slug }, question, now()),
      );
      if (!found) return undefined;
      const { cluster, machine, marks } = found;
      return (
        beforeCreation(cluster, { at: question.at }) ??
        answerOf(marks, jsonBody(costDocument(cluster, machine, question)))
      );
    },

    async alternatives(
      organizationId: number,
      slug: string,
      question: PriceQuestion,
      wanted: WantedSaving,
    ): Promise<Answer | undefined> {
      const { term } = question;
      const found = await read(organizationId, async (db) => {
        const at = now();
        const one = await readOneCluster(db, organizationId, { slug }, question, at);
        if (!one) return undefined;
        const than = comparedMachine(one.machine);
        const book = bookFor(one.entries, question, at);
        const nodes = one.cluster.shards * one.cluster.replicas;
        const sameRegion = than ? await cheaperInRegion(db, than, nodes, { term, book }, wanted) : [];
        return { ...one, than, book, sameRegion };
      });
      if (!found) return undefined;
      const { marks, than, book, sameRegion } = found;
      if (!than) return answerOf(marks, jsonBody(alternativesDocument(found, question, wanted, undefined)));
      const state = await catalogue.get();
      const currency = state.index.regions[0]?.currency;
      if (currency !== undefined && currency !== marks.currency)
        throw new Unavailable('the prices are being converted to another currency');
      const view = await books.priced(state.index, term, book, 'price');
      // One more than the list has: the machine of the cluster may be among them.
      const ofIndex = { term, book, match: wanted.match, most: wanted.limit + 1 };
      const candidates = { sameRegion, ...candidatesOfIndex(view, than, ofIndex) };
      const document = alternativesDocument(found, question, wanted, candidates);
      const places = placesOf(document, state);
      return answerOf(marks, jsonBody(document), places.length === 0 ? null : state.asOf(places));
    },

    /** Returns undefined for a cursor of another question. */
    async costs(
      organizationId: number,
      question: PriceQuestion,
      { limit, cursor }: PageOfCosts,
    ): Promise<Answer | undefined> {
      const after =
        cursor === undefined ? undefined : positionIn(readCursor(question, cursor, 0, POSITION_FORM)?.text);
      if (cursor !== undefined && !after) return undefined;
      const { costs, marks, tier } = await currentCosts(organizationId, question);
      // One read may end the waits of many requests.
      await nextTurn();
      const document = costsDocument(costs, question, limit, after);
      return { ...answerOf(marks, await longBody(document, 'clusters', shownCost)), tier };
    },

    async history(
      organizationId: number,
      slug: string,
      given: Omit<PriceQuestion, 'at'>,
      span: TimeSpan,
    ): Promise<Answer | Problem | undefined> {
      const question = { ...given, at: undefined };
      return read(organizationId, async (db) => {
        const found = await readOneCluster(db, organizationId, { slug }, question, now());
        if (!found) return undefined;
        const { cluster, machine, entries, marks } = found;
        const problem = beforeCreation(cluster, { ...span });
        if (problem) return problem;
        // A creation in the future counts as one of now.
        const from = span.from ?? earliest(cluster.createdAt, withMicroseconds(now()));
        const prices = await readPriceHistory(db, machine.stored.id, from);
        const asked = { question, entries, span: { ...span, from } };
        const steps = costHistory(cluster, machine.stored, prices, asked);
        return answerOf(marks, jsonBody({ cluster: identityOf(cluster), ...given, steps }));
      });
    },
  };
}

const earliest = (one: string, other: string): string => (Date.parse(one) <= Date.parse(other) ? one : other);

/** Returns the problem of the first time before the creation of the cluster; undefined if there is none. */
function beforeCreation(
  { slug, createdAt }: Pick<StoredCluster, 'slug' | 'createdAt'>,
  times: Readonly<Record<string, string | undefined>>,
): Problem | undefined {
  const [parameter, time] =
    Object.entries(times).find(([, time]) => time !== undefined && time < createdAt) ?? [];
  if (parameter === undefined) return undefined;
  return new Problem(400, {
    type: 'urn:fleetbook:problem:before-creation',
    title: 'Before creation',
    detail: `The query parameter "${parameter}" is ${time}, and the cluster ${slug} was created at ${createdAt}: it cost nothing before. Ask for ${createdAt} or later.`,
    members: { parameter, created_at: createdAt },
  });
}

/** Returns an answer that states the oldest time of its inputs. @param other of inputs that the marks do not name; null: there are none */
function answerOf(marks: Marks, body: Answer['body'], other: string | null | undefined = null): Answer {
  const times = other === null ? [marks.asOf] : [marks.asOf, other ?? null];
  const known = times.filter((time) => time !== null);
  return {
    body,
    tier: 'postgres',
    asOf: known.length < times.length ? undefined : known.sort()[0],
    currency: marks.currency ?? undefined,
  };
}

/** Returns the places of the listed machines in the index. */
function placesOf({ same_provider, anywhere }: AlternativesDocument, { index }: SearchState): number[] {
  const regions = [...same_provider, ...anywhere].map(({ machine }) => machine.region.id);
  return [...new Set(regions)].flatMap((id) => index.regionOf.get(id) ?? []);
}
