import type { CacheSubscription } from '../cache-subscription.ts';

/** Documents in one command. With more, the first waits long for the last. */
const AT_ONCE = 16;

/** Undefined if the cache did not answer, null if it has no value. */
type Value = Buffer | null | undefined;

interface Batch {
  readonly keys: string[];
  readonly resolvers: ((value: Value) => void)[];
}

/**
 * Reads values from the cache. All reads of one turn of the event loop are one command: under load the client's work for a
 * command is a large part of a miss.
 */
export class MgetBatcher {
  readonly #subscription: CacheSubscription;
  #open: Batch | undefined;

  constructor(subscription: CacheSubscription) {
    this.#subscription = subscription;
  }

  /** Returns the value. It never fails. */
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

  /** In a cluster a command has keys of one slot. The client sends all commands for one node in one write. */
  async #sendEach(keys: readonly string[], resolvers: Batch['resolvers']): Promise<void> {
    const read = (key: string) => this.#subscription.ask((redis) => redis.getBuffer(key));
    await Promise.all(keys.map(async (key, i) => resolvers[i]?.(await read(key))));
  }
}
