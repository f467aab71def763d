import type { CacheSubscription } from '../cache-subscription.ts';

/** Documents in one command. With more, the first waits long for the last. */
const AT_ONCE = 16;

type Value = Buffer | null | undefined;

interface Command {
  readonly keys: string[];
  readonly resolvers: ((value: Value) => void)[];
}

/**
 * Reads values from the cache. All reads of one turn of the event loop are one command: under load the client's work for a
 * command is a large part of a miss.
 */
export class MgetBatcher {
  readonly #subscription: CacheSubscription;
  #open: Command | undefined;

  constructor(subscription: CacheSubscription) {
    this.#subscription = subscription;
  }

  read(key: string): Promise<Value> {
    return new Promise((resolve) => {
      const command = this.#open ?? this.#begin();
      command.keys.push(key);
      command.resolvers.push(resolve);
      if (command.keys.length === AT_ONCE) void this.#send(command);
    });
  }

  #begin(): Command {
    const command: Command = { keys: [], resolvers: [] };
    this.#open = command;
    setImmediate(() => {
      if (this.#open === command) void this.#send(command);
    });
    return command;
  }

  async #send({ keys, resolvers }: Command): Promise<void> {
    this.#open = undefined;
    // In a cluster a command has keys of one slot. The client sends all commands for one node in one write.
    if (this.#subscription.lanes > 1) {
      for (const [i, key] of keys.entries())
        void this.#subscription.run((redis) => redis.getBuffer(key)).then(resolvers[i]);
      return;
    }
    const values = await this.#subscription.run((redis) => redis.mgetBuffer(keys));
    for (const [i, resolve] of resolvers.entries()) resolve(values?.[i]);
  }
}
