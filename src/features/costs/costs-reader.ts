/** Answers about the costs of an organization's clusters. Its methods may reject with `Unavailable`. */
import { LRUCache } from 'lru-cache';
import { pricesSince } from '../../db/prices/costs.ts';
import type { ClusterDocument } from '../../domain/cluster.ts';
import { readCursor } from '../../http/protocol/page-cursor.ts';
import { type Answer, type MaybePromise, whenThere } from '../../snapshot/document/answer.ts';
import { type Body, jsonBody } from '../../snapshot/document/body.ts';
import type { Document } from '../../snapshot/document/document.ts';
import { alternativesDocument, type WantedAlternatives } from './alternatives.ts';
import type { AlternativesDocument } from './alternatives-schema.ts';
import { type CostedClusters, costedClusters, NO_CLUSTERS } from './costed-clusters.ts';
import { costHistory, type TimeSpan } from './history.ts';
import { type CostsOptions, costAnswer, InputReader, type Inputs } from './inputs.ts';
import { BYTES_PER_CLUSTER, type OrganizationCosts, organizationCosts } from './organization-costs.ts';
import { type PriceQuestion, pricedMachine } from './prices.ts';
import { costDocument, costsDocument, POSITION_FORM, positionIn } from './shown-costs.ts';

export type CostsReader = ReturnType<typeof costsReader>;

/** Costs, and what they were calculated from. */
interface Calculated extends Pick<Inputs, 'machines' | 'stored' | 'book'> {
  readonly costs: OrganizationCosts;
  /** Answers by page. */
  readonly pages: LRUCache<string, Body>;
}

const PAGES_AT_MOST = 8;

export function costsReader(options: CostsOptions) {
  const inputs = new InputReader(options);
  const half = Math.max(1, Math.floor(options.memoryLimit / 2));
  // An organization that exceeds the limit is cached alone.
  const sized = (clusters: readonly unknown[]) => Math.min(half, 1 + clusters.length * BYTES_PER_CLUSTER);
  const parsed = new LRUCache<number, CostedClusters>({
    maxSize: half,
    sizeCalculation: (of) => sized(of.clusters),
  });
  const calculated = new LRUCache<string, Calculated>({
    maxSize: half,
    sizeCalculation: (of) => sized(of.costs.clusters),
  });

  function parse(organizationId: number, document: Document | undefined): CostedClusters {
    if (!document) return NO_CLUSTERS;
    const known = parsed.get(organizationId) ?? NO_CLUSTERS;
    if (known.document === document) return known;
    const found = costedClusters(document, known);
    parsed.set(organizationId, found);
    return found;
  }

  function calculate(organizationId: number, wanted: CostedClusters, found: Inputs): Calculated {
    const { term, prices, at } = found.question;
    const key = [organizationId, term, prices, at].join(' ');
    const known = calculated.get(key);
    const { machines, stored, book } = found;
    const hasSameBook = known?.book === book;
    if (
      hasSameBook &&
      known.costs.clusters === wanted.clusters &&
      known.machines === machines &&
      hasSame(known.stored, stored)
    )
      return known;
    const isSamePriced = (id: number) =>
      hasSameBook && known.machines.get(id) === machines.get(id) && known.stored.get(id) === stored.get(id);
    const priceOf = (id: number) =>
      (isSamePriced(id) ? known?.costs.machines.get(id) : undefined) ?? pricedMachine(id, found);
    const costs = organizationCosts(wanted, priceOf, known?.costs);
    const pages = new LRUCache<string, Body>({ max: PAGES_AT_MOST });
    const result = { machines, stored, book, costs, pages };
    calculated.set(key, result);
    return result;
  }

  function ofCluster<T>(
    organizationId: number,
    slug: string,
    question: PriceQuestion,
    next: (cluster: ClusterDocument, found: Inputs) => MaybePromise<T>,
  ): MaybePromise<T | undefined> {
    return whenThere(inputs.clusters(organizationId), (found) => {
      const slice = found.document?.slice(slug);
      if (!slice) return undefined;
      const cluster: ClusterDocument = JSON.parse(slice.identity.toString());
      const ids = new Set([cluster.machine.id]);
      return whenThere(inputs.get(organizationId, found, ids, question), (all) => next(cluster, all));
    });
  }

  return {
    /** Returns undefined for an unknown slug. */
    cost: (organizationId: number, slug: string, question: PriceQuestion): MaybePromise<Answer | undefined> =>
      ofCluster(organizationId, slug, question, (cluster, found) => {
        const priced = pricedMachine(cluster.machine.id, found);
        return costAnswer(found, jsonBody(costDocument(cluster, priced, question)));
      }),

    /** Returns undefined for an unknown slug. */
    alternatives: (
      organizationId: number,
      slug: string,
      question: PriceQuestion,
      wanted: WantedAlternatives,
    ): MaybePromise<Answer | undefined> =>
      ofCluster(organizationId, slug, question, (cluster, found) =>
        whenThere(inputs.books.priced(found.state.index, question.term, found.book, 'price'), (priced) => {
          const document = alternativesDocument(cluster, found, priced, wanted);
          return costAnswer(found, jsonBody(document), placesOf(document, found));
        }),
      ),

    /** Returns undefined for a cursor of another question. */
    costs: (
      organizationId: number,
      question: PriceQuestion,
      page: { readonly limit: number; readonly cursor: string | undefined },
    ): MaybePromise<Answer | undefined> => {
      const after =
        page.cursor === undefined
          ? undefined
          : positionIn(readCursor(question, page.cursor, 0, POSITION_FORM)?.text);
      if (page.cursor !== undefined && !after) return undefined;
      return whenThere(inputs.clusters(organizationId), (found) => {
        const wanted = parse(organizationId, found.document);
        return whenThere(inputs.get(organizationId, found, wanted.machines, question), (all) => {
          const { costs, pages } = calculate(organizationId, wanted, all);
          const key = `${page.limit} ${page.cursor ?? ''}`;
          const body = pages.get(key) ?? jsonBody(costsDocument(costs, question, page.limit, after));
          pages.set(key, body);
          return costAnswer(all, body);
        });
      });
    },

    /** Returns undefined for an unknown slug. */
    history: (
      organizationId: number,
      slug: string,
      question: Omit<PriceQuestion, 'at'>,
      span: TimeSpan,
    ): MaybePromise<Answer | undefined> =>
      ofCluster(organizationId, slug, { ...question, at: undefined }, async (cluster, found) => {
        const from = span.from ?? `${cluster.created_at}Z`;
        const prices = await options.documents.postgres((sql) => pricesSince(sql, cluster.machine.id, from), {
          organizationId,
        });
        const document = costHistory(cluster, prices, found, { ...span, from });
        return { ...costAnswer(found, jsonBody(document)), tier: 'postgres' as const };
      }),
  };
}

/** Returns the regions of the machines in the answer. */
function placesOf(
  { same_region, same_provider, anywhere }: AlternativesDocument,
  { state: { index }, machines }: Inputs,
): number[] {
  const listed = [...same_region, ...same_provider, ...anywhere];
  const own = [...machines.values()].map(({ place }) => place);
  return [
    ...new Set([...own, ...listed.flatMap(({ machine }) => index.regionOf.get(machine.region.id) ?? [])]),
  ];
}

function hasSame<K, V>(a: ReadonlyMap<K, V>, b: ReadonlyMap<K, V>): boolean {
  if (a === b) return true;
  if (a.size !== b.size) return false;
  for (const [key, value] of a) if (b.get(key) !== value) return false;
  return true;
}
