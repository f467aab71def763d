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

  /** The prices of a machine, newest first. */
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
   * Follows changes until the loop ends or the signal aborts. Reconnects after a lost connection.
   * @throws CursorGone if `after` is too old: list everything again, and continue from its `next`
   */
  changes(options: ChangesOptions = {}): AsyncGenerator<Change, void, undefined> {
    return followChanges(this.#requests, options);
  }

  /**
   * Returns the changes after a cursor, at once or, with `wait` (seconds), as soon as there is one. Without `after` it returns no
   * changes, and `next` is the current end of the feed: request it before you list everything.
   * @throws CursorGone
   */
  changePage(query: ChangePageQuery = {}, options: CallOptions = {}): Promise<ChangePage> {
    return changePage(this.#requests, query, options);
  }

  /** Lists the files for `download`. */
  exports({ available, ...options }: ExportsOptions = {}): Promise<Answer<readonly ExportFile[]>> {
    return this.#requests.json('v1/exports', { available }, options);
  }

  /** Downloads the whole catalogue as a file. Resumes after a lost connection. */
  download(file: ExportName, options: DownloadOptions = {}): Promise<Download> {
    return download(this.#requests, file, options);
  }
}
