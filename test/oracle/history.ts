/** One history from start to end. */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { withTimeout } from '../../src/domain/clock.ts';
import { cyclic, randomOf, wholeNumber } from '../support/random.ts';
import { until } from '../support/until.ts';
import { Actions, FIRST_ORGANIZATIONS } from './actions.ts';
import { Copies } from './copies.ts';
import { Model } from './model.ts';
import { operationsOf, shownOperation } from './operations.ts';
import { everyList, finalAnswer, questionOf } from './questions.ts';
import type { Servers } from './servers.ts';
import { openUpstream } from './upstream.ts';
import { type Reader, World, WrongAnswer } from './world.ts';

/** Requests of a round to each reader, and how many of them concurrently. */
const ROUND = 14;
const LANES = 2;
/** Milliseconds after which an operation on a broken server continues in the background. */
const OPERATION_MS = 4000;
/** Successful runs without a cluster until it is removed. */
const RUNS_UNTIL_GONE = 3;

export interface Tally {
  readonly answers: Record<string, number>;
  readonly tiers: Record<string, number>;
  readonly operations: Record<string, number>;
}

export const emptyTally = (): Tally => ({ answers: {}, tiers: {}, operations: {} });

const count = (counts: Record<string, number>, what: string | number): void => {
  counts[what] = (counts[what] ?? 0) + 1;
};

/** The reason of a failure, and the operations until then. */
export class HistoryFailed extends Error {
  override readonly name = 'HistoryFailed';
  readonly steps: readonly string[];

  constructor(cause: unknown, steps: readonly string[]) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.steps = steps;
  }
}

/**
 * Runs the history of a seed.
 * @param only indices of the operations to run; all unless given
 * @throws HistoryFailed
 */
export async function runHistory(
  servers: Servers,
  seed: number,
  tally: Tally,
  only?: readonly number[],
): Promise<void> {
  const steps: string[] = [];
  try {
    await new History(servers, seed, tally, steps).run(only);
  } catch (error) {
    throw new HistoryFailed(error, steps);
  }
}

class History {
  readonly #servers: Servers;
  readonly #seed: number;
  readonly #tally: Tally;
  readonly #steps: string[];
  readonly #began = performance.now();
  readonly #random: () => number;
  #rounds = 0;
  readonly #model = new Model(FIRST_ORGANIZATIONS);
  readonly #copies = new Copies();
  /** Operations that wait for a broken server. */
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(servers: Servers, seed: number, tally: Tally, steps: string[]) {
    this.#servers = servers;
    this.#seed = seed;
    this.#tally = tally;
    this.#steps = steps;
    this.#random = randomOf(seed + 1);
  }

  async run(only: readonly number[] | undefined): Promise<void> {
    await using database = await this.#servers.database();
    await using upstream = await openUpstream(this.#model, () => this.#nat(80));
    await using world = await World.open(this.#servers, database, this.#model, upstream.url);
    const actions = new Actions(world, this.#servers);
    await this.#begin(world, actions);
    try {
      for (const [index, operation] of operationsOf(this.#seed).entries()) {
        if (only && !only.includes(index)) continue;
        count(this.#tally.operations, operation.does);
        await this.#step(`${index}. ${shownOperation(operation)}`, async () => {
          const { does, pick } = operation;
          if (does === 'restart reader') await cyclic(world.readers, pick).restart();
          else await Promise.all([this.#bounded(actions.do(operation)), this.#round(world)]);
          if (does === 'start from disk') await world.readerWithDump.restart();
          await this.#round(world);
          if (does === 'pass time') await this.#copies.follow(cyclic(world.readers, pick));
        });
      }
      await this.#step('the end', () => this.#end(world, actions));
    } finally {
      await this.#servers.heal();
      await withTimeout(20_000, Promise.allSettled(this.#underWay));
    }
  }

  async #step(what: string, work: () => Promise<void>): Promise<void> {
    this.#steps.push(`${((performance.now() - this.#began) / 1000).toFixed(2)} s: ${what}`);
    await work();
  }

  /** A slow operation continues in the background. An error of a broken server is no failure of the history. */
  async #bounded(work: Promise<void>): Promise<void> {
    const { wellSince } = this.#servers.health;
    const done = work.catch((error: unknown) => {
      const isWell = wellSince !== undefined && wellSince === this.#servers.health.wellSince;
      if (error instanceof WrongAnswer || isWell) throw error;
      this.#steps.push(`   failed: ${error instanceof Error ? error.message : String(error)}`);
    });
    this.#underWay.add(done);
    void done.then(
      () => this.#underWay.delete(done),
      () => {},
    );
    await Promise.race([done, sleep(OPERATION_MS)]);
  }

  /** Stores and publishes the first states before a reader starts. */
  async #begin(world: World, actions: Actions): Promise<void> {
    for (const slug of FIRST_ORGANIZATIONS) await actions.makeOrganization(slug);
    await world.sync('machines');
    await world.sync('clusters');
    await actions.learnIds();
    await world.publish();
    world.worker.start();
    await Promise.all(world.readers.map((reader) => reader.start()));
    // The reader with a dump has its first documents.
    await this.#copies.begin(world.readerWithDump, this.#model.tokens);
  }

  /** Sends requests to every reader, some of them concurrently. The seed decides the requests of each lane. */
  async #round(world: World): Promise<void> {
    this.#rounds += 1;
    const lanes = world.readers.flatMap((reader, r) =>
      Array.from({ length: LANES }, async (_, lane) => {
        const random = randomOf(this.#seed + 100 * this.#rounds + 10 * r + lane);
        for (let sent = 0; sent < ROUND / LANES; sent++) {
          const token = cyclic(this.#model.tokens, wholeNumber(random, 1000));
          const question = questionOf(this.#model, token, random);
          if (!reader.canAnswer(question)) continue;
          const { status, tier } = await reader.sendQuestion(question, token);
          count(this.#tally.answers, status);
          if (tier !== undefined) count(this.#tally.tiers, tier);
        }
      }),
    );
    // No request may be open when the history ends.
    for (const result of await Promise.allSettled(lanes))
      if (result.status === 'rejected') throw result.reason;
  }

  /** Waits, after all servers are healed, until every reader agrees with the model within one comparison. */
  async #end(world: World, actions: Actions): Promise<void> {
    await this.#servers.heal();
    world.worker.start();
    await withTimeout(20_000, Promise.allSettled(this.#underWay));
    for (const kind of ['machines', 'clusters'] as const)
      for (let run = 0; run < RUNS_UNTIL_GONE; run++)
        await until(() => world.sync(kind), { what: `a run of ${kind}`, everyMs: 200 });
    await actions.learnIds();
    const publishing = { timeoutMs: 30_000, everyMs: 200 };
    await until(
      async () => {
        await world.hand.publisher.compare();
        return true;
      },
      { ...publishing, what: 'a comparison' },
    );
    // A scheduled run of the worker may raise a version between two comparisons.
    await until(async () => (await world.hand.publisher.compare()).published === 0, {
      ...publishing,
      what: 'the cache to equal the database',
    });
    // The outcome of these revocations is unknown.
    const unsure = this.#model.tokens.filter(
      ({ revokeBegun, revokedAt }) => revokeBegun !== undefined && revokedAt === undefined,
    );
    for (const token of unsure) await actions.revoke(token);
    await world.publish();
    await Promise.all(world.readers.map((reader) => this.#agrees(reader)));
    for (const reader of world.readers) await this.#copies.agree(reader);
  }

  /** Waits until the reader gives every token the answers of the model. */
  async #agrees(reader: Reader): Promise<void> {
    let wrong: WrongAnswer | undefined;
    const isShown = async () => {
      for (const token of this.#model.tokens) {
        for (const question of everyList(this.#model, token)) {
          if (!reader.canAnswer(question)) continue;
          const { status, body } = await reader.sendQuestion(question, token);
          const wanted = finalAnswer(this.#model, question, token);
          if (status !== wanted.status || (wanted.body !== undefined && body !== wanted.body))
            throw new Error(
              `${question.path} with token ${token.id}: ${status} ${body}, and not ${wanted.status} ${wanted.body ?? ''}`,
            );
        }
      }
      return true;
    };
    const shown = async () => {
      try {
        return await isShown();
      } catch (error) {
        if (!(error instanceof WrongAnswer)) throw error;
        wrong = error;
        return true;
      }
    };
    await until(shown, {
      timeoutMs: 20_000,
      everyMs: 50,
      what: `reader ${reader.name} agrees with the model`,
    });
    if (wrong) throw wrong;
  }

  #nat(below: number): number {
    return wholeNumber(this.#random, below);
  }
}
