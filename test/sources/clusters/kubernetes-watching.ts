import { ApiServer } from '../../../src/sources/clusters/kubernetes/api-server.ts';
import { connectionTo } from '../../../src/sources/clusters/kubernetes/connect.ts';
import { TIMING, type Timing } from '../../../src/sources/clusters/kubernetes/informer.ts';
import { readSettings } from '../../../src/sources/clusters/kubernetes/options.ts';
import { targetsOf } from '../../../src/sources/clusters/kubernetes/target.ts';
import { watched } from '../../../src/sources/clusters/kubernetes/watch.ts';
import type { ClusterItem } from '../../../src/sources/source.ts';
import { until } from '../../support/until.ts';
import type { FakeKubernetes } from './fake-kubernetes.ts';

/** The product's pauses, in milliseconds instead of seconds. */
const QUICK: Timing = { ...TIMING, firstPauseMs: 4, longestPauseMs: 20, givesUpAfterMs: 2_000, gatherMs: 15 };

/** Only CloudNativePG. */
export const PG_ONLY = { 'postgresql.cnpg.io/v1': 'clusters' };

/** A source's watch from its parts, with other pauses. */
export function watchOf(
  kube: FakeKubernetes,
  signal: AbortSignal,
  timing: Partial<Timing> = {},
  options: Readonly<Record<string, string>> = {},
): AsyncIterable<readonly ClusterItem[]> {
  const address = { url: kube.url, token: undefined, context: undefined, caFile: undefined };
  const server = new ApiServer(() => connectionTo(address));
  return watched(server, targetsOf(readSettings(options)), { ...QUICK, ...timing }, signal);
}

/** A watch and its states so far. */
export class Watching implements AsyncDisposable {
  readonly states: string[][] = [];
  failure: unknown;
  ended = false;
  readonly #controller = new AbortController();
  readonly #reading: Promise<void>;

  constructor(
    kube: FakeKubernetes,
    timing: Partial<Timing> = {},
    options: Readonly<Record<string, string>> = {},
  ) {
    const watch = watchOf(kube, this.#controller.signal, timing, options);
    this.#reading = this.#read(watch).catch((error: unknown) => {
      this.failure = error;
    });
  }

  /** The newest state: `name×replicas` of each cluster, sorted. */
  get newest(): readonly string[] | undefined {
    return this.states.at(-1);
  }

  /** Waits for this newest state. @returns it */
  async expected(...clusters: readonly string[]): Promise<readonly string[]> {
    return await until(() => (this.newest?.join() === clusters.join() ? this.newest : undefined), {
      what: `the watch to say ${clusters.join()}`,
    });
  }

  async fails(): Promise<unknown> {
    await until(() => this.failure !== undefined, { what: 'the watch to fail' });
    return this.failure;
  }

  async stop(): Promise<void> {
    this.#controller.abort();
    await this.#reading;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #read(watch: AsyncIterable<readonly ClusterItem[]>): Promise<void> {
    for await (const items of watch) {
      const clusters = items.map((item) =>
        item.kind === 'cluster' ? `${item.cluster.name}×${item.cluster.replicas}` : item.kind,
      );
      this.states.push(clusters.sort());
    }
    this.ended = true;
  }
}
