/** The processes of one history: readers and commands in this process, and a separate worker process. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { pino } from 'pino';
import { composeWorker, type Worker } from '../../src/app/worker.ts';
import { type Config, readConfig } from '../../src/config/config.ts';
import { withTimeout } from '../../src/domain/clock.ts';
import { redisReady } from '../../src/redis/redis.ts';
import { YEARLY } from '../support/day.ts';
import { cyclic } from '../support/random.ts';
import { NO_RETRIES } from '../support/request-retries.ts';
import { type Committed, Judge } from './judge.ts';
import { type Model, PROVIDER, type Token } from './model.ts';
import { type Answer, get, type Question, sendQuestion } from './question.ts';
import type { OracleRelease } from './release.ts';
import type { Database, Servers } from './servers.ts';

const silent = pino({ level: 'silent' });
/** Guards accept every state: histories test readers. */
const LAX = {
  removedShare: 1,
  addedShare: 1000,
  repricedShare: 1,
  reshapedShare: 1,
  rejectedShare: 1,
  smallCount: 1000,
  priceRatio: 1_000_000,
};
export const SOURCES = { machines: 'cloud', clusters: 'plane' } as const;

/** A wrong answer. */
export class WrongAnswer extends Error {
  override readonly name = 'WrongAnswer';
}

/** Each start uses the next release. With two releases, a restart is a step of a rolling update or of a rollback. */
class Releases {
  readonly #all: readonly OracleRelease[];
  #starts = 0;

  constructor(all: readonly OracleRelease[]) {
    this.#all = all;
  }

  next(): OracleRelease {
    return cyclic(this.#all, this.#starts++);
  }
}

export class Reader {
  readonly name: string;
  readonly #releases: Releases;
  readonly #env: Record<string, string>;
  readonly #judgeOf: () => Judge;
  /** It survives restarts of the reader. */
  readonly #hasDump: boolean;
  #judge: Judge | undefined;
  #stoppedAt = 0;
  #open:
    | {
        readonly url: string;
        readonly agent: Agent;
        readonly release: OracleRelease;
        close(): Promise<void>;
      }
    | undefined;

  constructor(
    name: string,
    releases: readonly OracleRelease[],
    env: Record<string, string>,
    judgeOf: () => Judge,
  ) {
    this.name = name;
    this.#releases = new Releases(releases);
    this.#env = env;
    this.#judgeOf = judgeOf;
    // Another release may write no dump.
    this.#hasDump = env.SNAPSHOT_DIR !== undefined && releases.length === 1;
  }

  async start(): Promise<void> {
    const release = this.#releases.next();
    const { composeReader, readSettings, buildApp } = release;
    const settings = readSettings(this.#env);
    const reader = await composeReader({ settings }, silent);
    const app = buildApp({
      ...reader,
      logger: false,
      version: '0.0.0',
      // A busy machine may be slow.
      limits: { maxEventLoopDelayMs: 0 },
    });
    await app.listen({ host: '127.0.0.1', port: 0 });
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    if (this.#hasDump && this.#judge) this.#judge.startedAgain(this.#stoppedAt);
    else this.#judge = this.#judgeOf();
    this.#open = {
      url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`,
      agent,
      release,
      async close() {
        agent.destroy();
        await app.close();
        await reader[Symbol.asyncDispose]();
      },
    };
  }

  async stop(): Promise<void> {
    this.#stoppedAt = performance.now();
    await this.#open?.close();
    this.#open = undefined;
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** False if its release lacks the feature. */
  canAnswer({ about }: Question): boolean {
    return about !== 'search' || this.#open?.release.hasSearch === true;
  }

  get hasFeed(): boolean {
    return this.#open?.release.hasFeed === true;
  }

  /** Requests a path. The judge does not see the answer. */
  get(path: string, token: Token): Promise<Answer> {
    if (!this.#open) throw new Error(`reader ${this.name} is not there`);
    return get(this.#open.agent, this.#open.url, path, token);
  }

  /** @throws WrongAnswer */
  async sendQuestion(question: Question, token: Token): Promise<Answer> {
    const judge = this.#judge;
    if (!this.#open || !judge) throw new Error(`reader ${this.name} is not there`);
    const ticket = judge.begin(question, token);
    const answer = await sendQuestion(this.#open.agent, this.#open.url, question, token);
    const problem = judge.end(ticket, answer);
    if (problem !== undefined)
      throw new WrongAnswer(`reader ${this.name}, ${question.path} with token ${token.id}: ${problem}`);
    return answer;
  }
}

/** Stops and starts the worker. */
class WorkerProcess {
  readonly #env: Record<string, string>;
  readonly #releases: Releases;
  #child: ChildProcess | undefined;

  constructor(releases: readonly OracleRelease[], env: Record<string, string>) {
    this.#releases = new Releases(releases);
    this.#env = env;
  }

  get isThere(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Does not wait for the start to complete. */
  start(): void {
    if (this.isThere) return;
    this.#child = fork(this.#releases.next().worker, { env: this.#env, stdio: 'ignore' });
    // A dead worker receives no message.
    this.#child.on('error', () => {});
  }

  run(sourceId: string): void {
    if (this.#child?.connected) this.#child.send(sourceId, () => {});
  }

  async stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child;
    if (!child || !this.isThere) return;
    const gone = once(child, 'exit');
    child.kill(signal);
    if (!(await withTimeout(10_000, gone))) child.kill('SIGKILL');
    await gone;
  }
}

export class World implements AsyncDisposable {
  readonly model: Model;
  readonly readers: readonly Reader[];
  /** The reader with a dump. */
  readonly readerWithDump: Reader;
  readonly worker: WorkerProcess;
  /** The resources of a command such as `fleetbook sync`. */
  readonly hand: Worker;
  readonly committed: Committed[] = [];
  readonly #config: Config;
  readonly #closing: AsyncDisposableStack;

  private constructor(
    parts: Pick<World, 'model' | 'readers' | 'readerWithDump' | 'worker' | 'hand' | 'committed'> & {
      config: Config;
    },
    closing: AsyncDisposableStack,
  ) {
    this.model = parts.model;
    this.readers = parts.readers;
    this.readerWithDump = parts.readerWithDump;
    this.worker = parts.worker;
    this.hand = parts.hand;
    this.committed = parts.committed;
    this.#config = parts.config;
    this.#closing = closing;
  }

  /** Opens all resources except the readers and the worker. */
  static async open(servers: Servers, database: Database, model: Model, upstream: string): Promise<World> {
    const { releases } = servers;
    await using closing = new AsyncDisposableStack();
    const folder = closing.use(await mkdtempDisposable(join(tmpdir(), 'fleetbook-history-')));
    const file = join(folder.path, 'sources.json');
    await writeFile(file, JSON.stringify(sourcesFile(upstream)));
    const env = {
      PATH: process.env.PATH ?? '',
      DATABASE_URL: database.proxiedUrl,
      CACHE_REDIS_URL: servers.cache.server.url,
      QUEUE_REDIS_URL: servers.queue.server.url,
      FLEETBOOK_CONFIG: file,
      ...mutationOf(process.env),
    };
    const config = readConfig({ ...env, DATABASE_URL: database.url });
    const hand = closing.use(composeWorker(config, silent, { requestRetries: NO_RETRIES }));
    const committed: Committed[] = [];
    const judge = () => new Judge(model, committed, () => servers.health);
    const withDump = { ...env, SNAPSHOT_DIR: join(folder.path, 'copy') };
    const readerWithDump = new Reader('b', releases, withDump, judge);
    const readers = [new Reader('a', releases, env, judge), readerWithDump];
    for (const reader of readers) closing.defer(() => reader.stop());
    const worker = new WorkerProcess(releases, env);
    closing.defer(() => worker.stop('SIGKILL'));
    return new World({ model, readers, readerWithDump, worker, hand, committed, config }, closing.move());
  }

  /** Runs a source as the command does. Returns false if it fails, or if another run replaced it. */
  async sync(kind: keyof typeof SOURCES): Promise<boolean> {
    const source = this.#config.sources.find(({ id }) => id === SOURCES[kind]);
    if (!source) throw new Error(`there is no source ${SOURCES[kind]}`);
    const atLeast = this.model[kind].newest;
    const { outcome } = await this.hand.runSource(source);
    if (outcome === 'held') throw new WrongAnswer(`a batch of ${source.id} was held`);
    if (outcome === 'superseded') return false;
    this.committed.push({ feed: kind, index: atLeast, at: performance.now() });
    return true;
  }

  /** Publishes the changes of a command. If that fails, the worker publishes them later. */
  async publish(): Promise<void> {
    try {
      await redisReady(this.hand.cache, 500);
      await withTimeout(3000, this.hand.publisher.publishDirty());
    } catch {
      // `fleetbook sync` ignores it as well.
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#closing.disposeAsync();
  }
}

/** The options that break the product, for child processes. */
function mutationOf({ ORACLE_MUTATION }: NodeJS.ProcessEnv): Record<string, string> {
  return ORACLE_MUTATION === undefined ? {} : { ORACLE_MUTATION };
}

function sourcesFile(upstream: string) {
  return {
    catalogues: [
      {
        id: SOURCES.machines,
        adapter: 'price-list',
        url: `${upstream}/machines`,
        schedule: YEARLY,
        options: { provider: PROVIDER.name },
        limits: LAX,
      },
    ],
    clusters: [
      {
        id: SOURCES.clusters,
        adapter: 'json',
        url: `${upstream}/clusters`,
        schedule: YEARLY,
        limits: LAX,
      },
    ],
  };
}
