/**
 * Decides whether an answer of a reader is right:
 *
 * - it is a whole state of an upstream, and of the token's organization;
 * - it is no older than earlier answers of this reader, and no older than its `Fleetbook-As-Of`. A restart may lose the
 *   answers of the last second before the stop;
 * - if no server is broken, it is at most a few seconds old, and no error;
 * - its token is valid, or was revoked within the documented time. A token that was refused stays refused.
 */
import { performance } from 'node:perf_hooks';
import type { Feed } from './feed.ts';
import { type Model, SLUGS, type Token } from './model.ts';
import type { Answer, Question } from './question.ts';

/** Publishing (2 s), a read of the cache (1 s), and time for a busy machine. */
const WELL_BOUND_MS = 8000;
/** A reader that is not linked accepts a token for this time. Includes time for a busy machine. */
const TOKEN_BOUND_MS = 14_000;

/** An answer this long before a stop is still valid after the start of a reader with a dump. */
const LOST_MS = 1000;

/** Since when no server is broken, in milliseconds of `performance.now()`. */
export interface Health {
  /** Undefined while a server is broken. */
  readonly wellSince: number | undefined;
  /** The same of PostgreSQL alone. */
  readonly databaseWellSince: number | undefined;
}

/** A committed state. */
export interface Committed {
  readonly feed: 'machines' | 'clusters';
  readonly index: number;
  /** Milliseconds of `performance.now()`. */
  readonly at: number;
}

export interface Ticket {
  readonly question: Question;
  readonly token: Token;
  /** Milliseconds of `performance.now()` at which the request began. */
  readonly at: number;
  readonly floor: number;
  readonly wasAccepted: boolean;
  readonly wasRefused: boolean;
  /** Clusters that this reader did not show any more, and their last state. */
  readonly gone: ReadonlyMap<string, number>;
}

type Range = { readonly oldest: number; readonly newest: number };

/** Rising values, each with its time (ms). */
class Rising {
  readonly #values = new Map<string, { readonly value: number; readonly at: number }[]>();

  get(key: string): number | undefined {
    return this.#values.get(key)?.at(-1)?.value;
  }

  raise(key: string, value: number): void {
    if (value <= (this.get(key) ?? Number.NEGATIVE_INFINITY)) return;
    this.#values.set(key, [...(this.#values.get(key) ?? []), { value, at: performance.now() }]);
  }

  forgetSince(at: number): void {
    for (const [key, values] of this.#values)
      this.#values.set(
        key,
        values.filter((each) => each.at < at),
      );
  }

  current(): Map<string, number> {
    return new Map(
      [...this.#values].flatMap(([key, values]) => values.slice(-1).map(({ value }) => [key, value])),
    );
  }
}

/** One reader from start to end, or over restarts with a dump. Its answers limit its later answers. */
export class Judge {
  readonly #model: Model;
  readonly #committed: readonly Committed[];
  readonly #health: () => Health;
  /** When the reader started, in milliseconds of `performance.now()`. */
  #since: number;
  readonly #floors = new Rising();
  readonly #accepted = new Set<number>();
  readonly #refused = new Set<number>();
  readonly #gone = new Rising();

  constructor(
    model: Model,
    committed: readonly Committed[],
    health: () => Health,
    since = performance.now(),
  ) {
    this.#since = since;
    this.#model = model;
    this.#committed = committed;
    this.#health = health;
  }

  /** Notes a restart. The reader knows what it knew a second before its stop, and every revocation. */
  startedAgain(stoppedAt: number): void {
    this.#since = performance.now();
    this.#floors.forgetSince(stoppedAt - LOST_MS);
    this.#gone.forgetSince(stoppedAt - LOST_MS);
  }

  begin(question: Question, token: Token): Ticket {
    return {
      question,
      token,
      at: performance.now(),
      floor: this.#floors.get(documentOf(question)) ?? 0,
      wasAccepted: this.#accepted.has(token.id),
      wasRefused: this.#refused.has(token.id),
      gone: this.#gone.current(),
    };
  }

  /** Returns the fault of an answer; undefined for a right one. */
  end(ticket: Ticket, answer: Answer): string | undefined {
    const { question, token } = ticket;
    const { status } = answer;
    if (status === 503) return this.#unavailable(ticket, answer);
    if (status === 401) return this.#refusal(ticket);
    const badToken = this.#acceptance(ticket);
    if (badToken !== undefined) return badToken;
    const isOfClusters = question.about === 'clusters' || question.about === 'cluster';
    if (status === 403) return isOfClusters && !token.seesClusters ? undefined : 'it is forbidden';
    if (isOfClusters && !token.seesClusters) return `without the scope the answer was ${status}`;
    if (status !== 200 && status !== 404) return `the status is ${status}: ${answer.body}`;
    if (status === 404 && question.about !== 'machine' && question.about !== 'cluster')
      return 'a list was not found';
    const range = isOfClusters ? this.#clusters(ticket, answer) : this.#machines(ticket, answer);
    if (typeof range === 'string') return range;
    return this.#age(ticket, answer, range);
  }

  #unavailable({ at }: Ticket, { retryAfter }: Answer): string | undefined {
    if (retryAfter === undefined) return '503 without Retry-After';
    const { wellSince } = this.#health();
    const since = Math.max(wellSince ?? Number.POSITIVE_INFINITY, this.#since);
    return since < at - WELL_BOUND_MS ? '503 while nothing was broken' : undefined;
  }

  #refusal({ token, at, wasAccepted }: Ticket): string | undefined {
    if (token.revokeBegun !== undefined) {
      if (wasAccepted && at > token.revokeBegun) this.#refused.add(token.id);
      return undefined;
    }
    if (wasAccepted) return 'a good token was refused that had been accepted';
    const { wellSince = at } = this.#health();
    return Math.max(token.madeAt, wellSince) < at - TOKEN_BOUND_MS ? 'a good token was refused' : undefined;
  }

  #acceptance({ token, at, wasRefused }: Ticket): string | undefined {
    this.#accepted.add(token.id);
    if (wasRefused) return 'a token was accepted that had been refused as revoked';
    const { revokedAt } = token;
    if (revokedAt === undefined) return undefined;
    const { wellSince, databaseWellSince } = this.#health();
    if (wellSince !== undefined && Math.max(revokedAt, wellSince) < at - WELL_BOUND_MS)
      return `a token was accepted ${Math.round(at - revokedAt)} ms after its revocation, while nothing was broken`;
    if (databaseWellSince !== undefined && Math.max(revokedAt, databaseWellSince) < at - TOKEN_BOUND_MS)
      return `a token was accepted ${Math.round(at - revokedAt)} ms after its revocation, while PostgreSQL was well`;
    return undefined;
  }

  /** Returns the states that the answer may show, or the fault as text. */
  #machines({ question, floor }: Ticket, { status, body }: Answer): Range | string {
    const model = this.#model;
    const isOfRegion = question.about === 'region' || question.about === 'search';
    if (isOfRegion) learnIds(model, question.code, body);
    const text = (index: number) =>
      isOfRegion
        ? model.region(question.code, index)
        : question.about === 'machine'
          ? model.machine(question.key, index)
          : undefined;
    const wanted = status === 404 ? undefined : body;
    const fits = (index: number) => text(index) === wanted;
    return rangeOf(model.machines, floor, fits) ?? this.#never(model.machines, floor, fits, body);
  }

  #never(feed: Feed<unknown>, floor: number, fits: (index: number) => boolean, body: string): string {
    const before = rangeOf(feed, 0, fits);
    if (before)
      return `it went back: to state ${before.newest}, though the reader had given ${floor}: ${body}`;
    return `it was never true (known are ${floor} to ${feed.newest}): ${body}`;
  }

  #clusters({ question, floor, gone }: Ticket, { status, body }: Answer): Range | string {
    if (question.about !== 'clusters' && question.about !== 'cluster') return 'unreachable';
    const { organization } = question;
    const shown = status === 404 ? new Map<string, string>() : shownClusters(question, body);
    if (typeof shown === 'string') return shown;
    if (shown.size > 0 && gone.has(organization.slug)) return 'a deleted organization came back';
    const slugs = question.about === 'cluster' ? [question.slug] : SLUGS;
    const fits = (index: number) =>
      slugs.every((slug) => this.#fits(`${organization.slug}/${slug}`, index, shown.get(slug), gone));
    const range = rangeOf(this.#model.clusters, floor, fits);
    if (!range) {
      // The lists of a deleted organization are empty while its tokens are still accepted.
      if (shown.size > 0 || organization.deleteBegun === undefined)
        return this.#never(this.#model.clusters, floor, fits, body);
      this.#gone.raise(organization.slug, Number.POSITIVE_INFINITY);
      return { oldest: floor, newest: this.#model.clusters.newest };
    }
    for (const slug of slugs) {
      const key = `${organization.slug}/${slug}`;
      const last = this.#model.clusters.lastWith(key, range.oldest);
      if (!shown.has(slug) && last >= 0) this.#gone.raise(key, last);
    }
    return range;
  }

  /** A cluster that the control plane does not list any more is shown until several runs miss it, and never again. */
  #fits(key: string, index: number, shown: string | undefined, gone: Ticket['gone']): boolean {
    const listed = this.#model.cluster(key, index);
    if (listed !== undefined) return shown === listed;
    if (shown === undefined) return true;
    const last = this.#model.clusters.lastWith(key, index);
    return last >= 0 && last > (gone.get(key) ?? -1) && shown === this.#model.cluster(key, last);
  }

  #age(
    { question, floor, at }: Ticket,
    { asOf, tier }: Answer,
    { oldest, newest }: Range,
  ): string | undefined {
    const kind = question.about === 'clusters' || question.about === 'cluster' ? 'clusters' : 'machines';
    const feed: Feed<unknown> = this.#model[kind];
    const document = documentOf(question);
    this.#floors.raise(document, Math.max(oldest, floor));
    if (asOf !== undefined && feed.inForceAt(asOf) > newest) {
      const next = feed.at(newest + 1).since;
      return `it is older than it says: state ${newest} ended ${asOf - next} ms before Fleetbook-As-Of (tier ${tier})`;
    }
    const { wellSince } = this.#health();
    if (wellSince === undefined || wellSince > at - WELL_BOUND_MS || this.#since > at - WELL_BOUND_MS)
      return undefined;
    for (const { feed: of, index, at: committedAt } of this.#committed)
      if (of === kind && index > newest && committedAt < at - WELL_BOUND_MS)
        return `it is behind: state ${newest}, though ${index} was committed ${Math.round(at - committedAt)} ms before (tier ${tier})`;
    return undefined;
  }
}

/** Returns the document of a question: its answers have one version. */
function documentOf(question: Question): string {
  switch (question.about) {
    case 'region':
      return `region ${question.code}`;
    // The index of all machines gets a publication a moment later than the list.
    case 'search':
      return `search ${question.code}`;
    case 'machine':
      return `region ${question.key.split('/')[0]}`;
    default:
      return `clusters ${question.organization.slug}`;
  }
}

/** Returns the oldest and the newest served state from `floor` on that fits. */
function rangeOf(feed: Feed<unknown>, floor: number, fits: (index: number) => boolean): Range | undefined {
  let range: Range | undefined;
  for (let index = floor; index <= feed.newest; index++)
    if (feed.at(index).wasServed && fits(index)) range = { oldest: range?.oldest ?? index, newest: index };
  return range;
}

/** The database makes ids. The model learns an unknown one from the first answer with it. */
function learnIds(model: Model, code: string, body: string): void {
  const listed = parsed(body) as { id?: unknown; name?: unknown }[] | undefined;
  if (!Array.isArray(listed)) return;
  for (const { id, name } of listed) {
    const key = `${code}/${String(name)}`;
    if (typeof id !== 'number' || model.machineIds.has(key) || model.machineKeyOf(id) !== undefined) continue;
    model.machineIds.set(key, id);
  }
}

/** Returns the clusters by slug as JSON, or a text if the answer is no list of clusters in order. */
function shownClusters(question: Question, body: string): Map<string, string> | string {
  const found = parsed(body);
  const list = (question.about === 'clusters' ? found : [found]) as {
    slug?: unknown;
    created_at?: unknown;
  }[];
  if (!Array.isArray(list)) return `it is no list: ${body}`;
  const texts = list.map((each) => JSON.stringify(each));
  if (body !== (question.about === 'clusters' ? `[${texts.join(',')}]` : texts[0]))
    return `it has other bytes: ${body}`;
  const order = list.map(({ created_at }) => String(created_at));
  if (order.some((at, i) => i > 0 && at <= String(order[i - 1]))) return `it is out of order: ${body}`;
  return new Map(list.map(({ slug }, i) => [String(slug), texts[i] ?? '']));
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
