/** Fleetbook's API, method by method. */
import { type ChangePageQuery, type ChangesOptions, changePage, followChanges } from './changes.ts';
import type {
  Change,
  ChangePage,
  Cluster,
  ExportFile,
  ExportName,
  Machine,
  MachineWithFacts,
  Price,
  Provider,
  Recommendations,
  RecommendQuestion,
  SearchPage,
  SearchQuestion,
} from './documents.ts';
import { type Download, type DownloadOptions, download, type ExportsOptions } from './download.ts';
import { type Answer, type CallOptions, type ClientOptions, Requests } from './requests.ts';
import { MemoryStore } from './store.ts';

/**
 * Asks one Fleetbook with one token. Needs `fetch` and the other web standards alone: Node, browsers, edge runtimes.
 * Unless said otherwise a method rejects with `FleetbookProblem` (the API says no), `FleetbookUnreachable` (there
 * is no answer) or the reason of the caller's signal.
 */
export class FleetbookClient {
  readonly #requests: Requests;

  /** @throws TypeError that names the option that is wrong */
  constructor(options: ClientOptions) {
    const { store = new MemoryStore() } = options;
    this.#requests = new Requests(options, store === false ? undefined : store);
  }

  /** Every provider with its regions: where ids come from. */
  providers(options: CallOptions = {}): Promise<Answer<readonly Provider[]>> {
    return this.#requests.json('v1/providers', {}, options);
  }

  /** The machines of a region, the cheapest first; none where there is no such provider or region. */
  machines(provider: number, region: number, options: CallOptions = {}): Promise<Answer<readonly Machine[]>> {
    return this.#requests.json('v1/machines', { provider, region }, options);
  }

  /** One machine; a problem with status 404 where it is not in the published catalogue. */
  machine(id: number, options: CallOptions = {}): Promise<Answer<Machine>> {
    return this.#requests.json(`v1/machines/${id}`, {}, options);
  }

  /** What a machine has cost, the newest price first. */
  prices(id: number, options: CallOptions = {}): Promise<Answer<readonly Price[]>> {
    return this.#requests.json(`v1/machines/${id}/prices`, {}, options);
  }

  /** The clusters of the token's organization. */
  clusters(options: CallOptions = {}): Promise<Answer<readonly Cluster[]>> {
    return this.#requests.json('v1/clusters', {}, options);
  }

  /** One of them; a problem with status 404 where there is none of that slug. */
  cluster(slug: string, options: CallOptions = {}): Promise<Answer<Cluster>> {
    return this.#requests.json(`v1/clusters/${encodeURIComponent(slug)}`, {}, options);
  }

  /** A page of the machines that match. */
  search<Field extends keyof MachineWithFacts = keyof MachineWithFacts>(
    question: SearchQuestion<Field> = {},
    options: CallOptions = {},
  ): Promise<Answer<SearchPage<Pick<MachineWithFacts, Field>>>> {
    return this.#requests.json('v1/machines/search', question, options);
  }

  /** All of the pages, each asked for when it is wanted. */
  async *searchPages<Field extends keyof MachineWithFacts = keyof MachineWithFacts>(
    question: SearchQuestion<Field> = {},
    options: CallOptions = {},
  ): AsyncGenerator<Answer<SearchPage<Pick<MachineWithFacts, Field>>>, void, undefined> {
    let { cursor } = question;
    do {
      const page = await this.search({ ...question, cursor }, options);
      yield page;
      cursor = page.data.next ?? undefined;
    } while (cursor !== undefined);
  }

  /** The cheapest machine that fits, of each provider. */
  recommend(question: RecommendQuestion, options: CallOptions = {}): Promise<Answer<Recommendations>> {
    return this.#requests.json('v1/machines/recommend', question, options);
  }

  /**
   * Changes as they come, until the loop is left or the signal fires; a lost connection is made again.
   * @throws CursorGone when `after` is too old: list again, then follow from its `next`
   */
  changes(options: ChangesOptions = {}): AsyncGenerator<Change, void, undefined> {
    return followChanges(this.#requests, options);
  }

  /**
   * The changes after a place, at once or, with `wait` (seconds), as soon as there is one. Without `after` there are none,
   * and `next` is where the feed is now: take it before you list what you want to follow.
   * @throws CursorGone
   */
  changePage(query: ChangePageQuery = {}, options: CallOptions = {}): Promise<ChangePage> {
    return changePage(this.#requests, query, options);
  }

  /** The files that `download` has. */
  exports({ available, ...options }: ExportsOptions = {}): Promise<Answer<readonly ExportFile[]>> {
    return this.#requests.json('v1/exports', { available }, options);
  }

  /** A whole catalogue as one file. A connection that breaks goes on where it was. */
  download(file: ExportName, options: DownloadOptions = {}): Promise<Download> {
    return download(this.#requests, file, options);
  }
}
