/** Sends requests while workers are broken, and collects wrong answers. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { MeasuredRequest } from './load.ts';
import { editionOf } from './price-list.ts';
import { figures, type Row, troubles } from './row.ts';
import type { WorkerStack } from './worker-stack.ts';

const PAUSE_MS = 20;

export class Prober implements AsyncDisposable {
  readonly #stack: WorkerStack;
  readonly #requests: MeasuredRequest[] = [];
  /** Path → the newest edition in its answers. */
  readonly #shown = new Map<string, number>();
  readonly #probing: Promise<void>;
  #isOver = false;

  constructor(stack: WorkerStack) {
    this.#stack = stack;
    this.#probing = this.#probe();
  }

  async #probe(): Promise<void> {
    const regions = await this.#stack.store.sql<{ id: number; provider: number }[]>`
      select id, provider_id as provider from regions where organization_id is null`;
    for (let i = 0; !this.#isOver; i++) {
      const region = regions[i % regions.length];
      if (region) await this.#send(`/v1/machines?provider=${region.provider}&region=${region.id}`);
      await sleep(PAUSE_MS);
    }
  }

  async #send(path: string): Promise<void> {
    const { reader, token, upstream } = this.#stack;
    const at = performance.now();
    let [status, wrong, why]: [number, string | undefined, string | undefined] = [0, undefined, undefined];
    try {
      const response = await fetch(reader.url + path, { headers: { authorization: `Bearer ${token}` } });
      status = response.status;
      const answer: unknown = await response.json();
      if (status === 200) wrong = this.#judge(path, editionOf(answer, upstream));
      else why = JSON.stringify(answer);
    } catch (error) {
      if (status === 200) wrong = String(error);
      else why = String(error);
    }
    const ms = performance.now() - at;
    this.#requests.push({
      at,
      reader: reader.name,
      path,
      status,
      tier: undefined,
      ms,
      wrong,
      ...NO_LEDGER,
      ...{ why },
    });
  }

  #judge(path: string, edition: number): string | undefined {
    const before = this.#shown.get(path) ?? 0;
    this.#shown.set(path, Math.max(edition, before));
    if (edition < before) return `went back from ${before} to ${edition}`;
    return edition > this.#stack.upstream.edition ? `never true: ${edition}` : undefined;
  }

  figures(): Omit<Row, 'fault' | 'lost' | 'recoverySeconds'> {
    return figures(this.#requests);
  }

  troubles(): Record<string, number> {
    const isSlow = ([what]: [string, number]) => what.includes(': slow, ');
    return Object.fromEntries(Object.entries(troubles(this.#requests)).filter((each) => !isSlow(each)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#probing;
  }
}

const NO_LEDGER = { behindMs: 0, lostMs: 0, newest: 0 } as const;
