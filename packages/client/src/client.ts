/** The client: one method for each route of the API. */

import type {
  Alternatives,
  Change,
  ChangePage,
  Cluster,
  ClusterCost,
  ClusterDetails,
  CostHistory,
  Costs,
  DatabasePage,
  DatabaseWithHistory,
  ExportFile,
  FirstAvailable,
  LifecyclePage,
  Machine,
  MachineAvailability,
  MachineTerms,
  Price,
  Provider,
  Recommendations,
  RegionPrices,
} from './api.ts';
import { type ChangesOptions, changePage, followChanges } from './changes.ts';
import type {
  AlternativesQuestion,
  ChangesQuestion,
  CostHistoryQuestion,
  CostQuestion,
  CostsQuestion,
  DatabaseQuestion,
  DatabasesQuestion,
  ExportName,
  FirstAvailableQuestion,
  KarpenterQuestion,
  LifecycleQuestion,
  OpenCostQuestion,
  RecommendQuestion,
  SearchedMachine,
  SearchPage,
  SearchQuestion,
  TermsQuestion,
} from './documents.ts';
import { type Download, type DownloadOptions, download } from './download.ts';
import { type Answer, type CallOptions, type ClientOptions, Requests } from './requests.ts';
import { MemoryStore } from './store.ts';

/**
 * Sends requests to one Fleetbook with one token. Runs in Node, in browsers and on edge runtimes.
 *
 * A method rejects with `FleetbookProblem` if the API refuses the request, with `FleetbookUnreachable` if no valid answer
 * arrives in time, and with the reason of the caller's signal if it aborts. Methods name other errors themselves.
 */
export class FleetbookClient {
  readonly #requests: Requests;

  /** @throws TypeError that names the invalid option */
  constructor(options: ClientOptions) {
    const { store = new MemoryStore() } = options;
    this.#requests = new Requests(options, store === false ? undefined : store);
  }

  /** Lists the providers and their regions, with the ids that other methods need. */
  providers(options: CallOptions = {}): Promise<Answer<readonly Provider[]>> {
    return this.#requests.json('v1/providers', {}, options);
  }

  /** Lists the machines of a region, cheapest first. The list of an unknown provider or region is empty. */
  machines(provider: number, region: number, options: CallOptions = {}): Promise<Answer<readonly Machine[]>> {
    return this.#requests.json('v1/machines', { provider, region }, options);
  }

  /** Reads one machine. @throws FleetbookProblem with status 404 if the machine is not in the published catalogue */
  machine(id: number, options: CallOptions = {}): Promise<Answer<Machine>> {
    return this.#requests.json(`v1/machines/${id}`, {}, options);
  }

  /** Reads the price history of a machine, newest first. */
  prices(id: number, options: CallOptions = {}): Promise<Answer<readonly Price[]>> {
    return this.#requests.json(`v1/machines/${id}/prices`, {}, options);
  }

  /** Reads when a machine could be ordered, newest first, and for which share of the last 30 days. */
  availability(id: number, options: CallOptions = {}): Promise<Answer<MachineAvailability>> {
    return this.#requests.json(`v1/machines/${id}/availability`, {}, options);
  }

  /** Finds the first machine of an ordered list that can be ordered now. `machine` is null if none can. */
  firstAvailable(
    question: FirstAvailableQuestion,
    options: CallOptions = {},
  ): Promise<Answer<FirstAvailable>> {
    return this.#requests.json('v1/machines/first-available', question, options);
  }

  /** Reads the prices of a machine by term. */
  terms(id: number, question: TermsQuestion = {}, options: CallOptions = {}): Promise<Answer<MachineTerms>> {
    return this.#requests.json(`v1/machines/${id}/terms`, question, options);
  }

  /** Reads the prices of storage, traffic and addresses in a region. */
  regionPrices(region: number, options: CallOptions = {}): Promise<Answer<RegionPrices>> {
    return this.#requests.json(`v1/regions/${region}/prices`, {}, options);
  }

  /** Reads one page of the plans of managed databases that match. */
  databases(question: DatabasesQuestion = {}, options: CallOptions = {}): Promise<Answer<DatabasePage>> {
    return this.#requests.json('v1/databases', question, options);
  }

  /** Reads one plan of a managed database. @throws FleetbookProblem with status 404 if its provider does not state it any more */
  database(
    id: number,
    question: DatabaseQuestion = {},
    options: CallOptions = {},
  ): Promise<Answer<DatabaseWithHistory>> {
    return this.#requests.json(`v1/databases/${id}`, question, options);
  }

  /** Lists the clusters of the token's organization. */
  clusters(options: CallOptions = {}): Promise<Answer<readonly Cluster[]>> {
    return this.#requests.json('v1/clusters', {}, options);
  }

  /** Reads one cluster of the token's organization. @throws FleetbookProblem with status 404 for an unknown slug */
  cluster(slug: string, options: CallOptions = {}): Promise<Answer<Cluster>> {
    return this.#requests.json(`v1/clusters/${encodeURIComponent(slug)}`, {}, options);
  }

  /** Reads engine and version of a cluster, and the end of its support. */
  clusterDetails(slug: string, options: CallOptions = {}): Promise<Answer<ClusterDetails>> {
    return this.#ofCluster(slug, 'details', {}, options);
  }

  /** Reads one page of the clusters whose version has ended, ends within the days, or has an unknown end. */
  lifecycle(question: LifecycleQuestion = {}, options: CallOptions = {}): Promise<Answer<LifecyclePage>> {
    return this.#requests.json('v1/lifecycle', question, options);
  }

  /** Reads what a cluster costs, with every price and quantity. */
  clusterCost(
    slug: string,
    question: CostQuestion = {},
    options: CallOptions = {},
  ): Promise<Answer<ClusterCost>> {
    return this.#ofCluster(slug, 'cost', question, options);
  }

  /** Reads what a cluster cost over time. */
  clusterCostHistory(
    slug: string,
    question: CostHistoryQuestion = {},
    options: CallOptions = {},
  ): Promise<Answer<CostHistory>> {
    return this.#ofCluster(slug, 'cost/history', question, options);
  }

  /** Finds machines that cost less for a cluster. */
  alternatives(
    slug: string,
    question: AlternativesQuestion = {},
    options: CallOptions = {},
  ): Promise<Answer<Alternatives>> {
    return this.#ofCluster(slug, 'alternatives', question, options);
  }

  /** Reads one page of what all clusters cost, with totals by provider and region. */
  costs(question: CostsQuestion = {}, options: CallOptions = {}): Promise<Answer<Costs>> {
    return this.#requests.json('v1/costs', question, options);
  }

  #ofCluster<T>(slug: string, path: string, question: object, options: CallOptions): Promise<Answer<T>> {
    return this.#requests.json(`v1/clusters/${encodeURIComponent(slug)}/${path}`, question, options);
  }

  /** Reads one page of the matching machines. */
  search<Field extends keyof SearchedMachine = keyof SearchedMachine>(
    question: SearchQuestion<Field> = {},
    options: CallOptions = {},
  ): Promise<Answer<SearchPage<Pick<SearchedMachine, Field>>>> {
    return this.#requests.json('v1/machines/search', question, options);
  }

  /** Reads all pages of the matching machines. Requests each page when the loop reaches it. */
  async *searchPages<Field extends keyof SearchedMachine = keyof SearchedMachine>(
    question: SearchQuestion<Field> = {},
    options: CallOptions = {},
  ): AsyncGenerator<Answer<SearchPage<Pick<SearchedMachine, Field>>>, void, undefined> {
    let { cursor } = question;
    do {
      const page = await this.search({ ...question, cursor }, options);
      yield page;
      cursor = page.data.next ?? undefined;
    } while (cursor !== undefined);
  }

  /** Finds the cheapest suitable machine of each provider. */
  recommend(question: RecommendQuestion, options: CallOptions = {}): Promise<Answer<Recommendations>> {
    return this.#requests.json('v1/machines/recommend', question, options);
  }

  /**
   * Yields changes in order, each once, until the loop ends or the signal aborts. Reconnects after a lost connection.
   * @throws CursorGone if `after` is too old. List everything again, and continue from the error's `next`.
   */
  changes(options: ChangesOptions = {}): AsyncGenerator<Change, void, undefined> {
    return followChanges(this.#requests, options);
  }

  /**
   * Reads one page of the changes after a cursor. Without `after` the page
   * is empty, and `next` is the current end of the feed: request it before you list everything.
   * @throws CursorGone if `after` is too old
   */
  changePage(query: ChangesQuestion = {}, options: CallOptions = {}): Promise<ChangePage> {
    return changePage(this.#requests, query, options);
  }

  /** Lists the files that `download` accepts. */
  exports(options: CallOptions = {}): Promise<Answer<readonly ExportFile[]>> {
    return this.#requests.json('v1/exports', {}, options);
  }

  /** Downloads one export file as a stream. Resumes after a lost connection. */
  download(file: ExportName, options: DownloadOptions = {}): Promise<Download> {
    return download(this.#requests, file, options);
  }

  /** Reads the own prices of a region as NodeOverlay objects of Karpenter, a stream of YAML documents. */
  karpenter(question: KarpenterQuestion, options: CallOptions = {}): Promise<Answer<string>> {
    return this.#requests.text('v1/exports/karpenter.yaml', question, options, 'application/yaml');
  }

  /** Reads the prices of one provider as CSV for OpenCost. */
  openCost(question: OpenCostQuestion, options: CallOptions = {}): Promise<Answer<string>> {
    return this.#requests.text('v1/exports/opencost.csv', question, options, 'text/csv');
  }
}
