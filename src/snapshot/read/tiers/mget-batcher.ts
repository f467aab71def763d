import type { CacheSubscription } from '../cache-subscription.ts';

/** Documents in one command: more would let the first wait long for the last. */
const AT_ONCE = 16;

/** Undefined when the cache did not answer, null when it has no such value. */
type Value = Buffer | null | undefined;

interface Batch {
  readonly keys: string[];
  readonly resolvers: ((value: Value) => void)[];
}

/**
 * Reads values from the cache. What is asked for in one turn of the event loop goes out as one command, since under
 * load the client's work for a command is a large part of a miss.
 */
export class MgetBatcher {
  readonly #subscription: CacheSubscription;
  #open: Batch | undefined;

  constructor(subscription: CacheSubscription) {
    this.#subscription = subscription;
  }

  /** Never fails: undefined when the cache does not answer, null when it has no such value. */
  read(key: string): Promise<Value> {
    return new Promise((resolve) => {
      const batch = this.#open ?? this.#begin();
      batch.keys.push(key);
      batch.resolvers.push(resolve);
      if (batch.keys.length === AT_ONCE) void this.#send(batch);
    });
  }

  #begin(): Batch {
    const batch: Batch = { keys: [], resolvers: [] };
    this.#open = batch;
    setImmediate(() => {
      if (this.#open === batch) void this.#send(batch);
    });
    return batch;
  }

  async #send({ keys, resolvers }: Batch): Promise<void> {
    this.#open = undefined;
    if (this.#subscription.lanes > 1) return this.#sendEach(keys, resolvers);
    const values = await this.#subscription.ask((redis) => redis.mgetBuffer(keys));
    for (const [i, resolve] of resolvers.entries()) resolve(values?.[i]);
  }

  /** One command may not name keys of several slots; the client sends what is for one node of the cluster at once. */
  async #sendEach(keys: readonly string[], resolvers: Batch['resolvers']): Promise<void> {
    const read = (key: string) => this.#subscription.ask((redis) => redis.getBuffer(key));
    await Promise.all(keys.map(async (key, i) => resolvers[i]?.(await read(key))));
  }
}
