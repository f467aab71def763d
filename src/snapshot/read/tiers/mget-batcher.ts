import type { CacheCommands } from '../cache-commands.ts';

/** Documents in one command. With more, the first waits long for the last. */
const AT_ONCE = 16;

/** Undefined if the cache did not answer, null if it has no value. */
type Value = Buffer | null | undefined;

interface Command {
  readonly keys: string[];
  readonly resolvers: ((value: Value) => void)[];
}

/**
 * Returns a function that reads values from the cache, and never fails. All reads of one turn of the event loop are one
 * command: under load the client's work for a command is a large part of a miss.
 */
export function mgetBatcher(read: CacheCommands['read'], lanes: number): (key: string) => Promise<Value> {
  let open: Command | undefined;

  function begin(): Command {
    const command: Command = { keys: [], resolvers: [] };
    setImmediate(() => {
      if (open === command) void send(command);
    });
    return command;
  }

  async function send({ keys, resolvers }: Command): Promise<void> {
    open = undefined;
    // In a cluster a command has keys of one slot. The client sends all commands for one node in one write.
    if (lanes > 1) {
      for (const [i, key] of keys.entries()) void read((redis) => redis.getBuffer(key)).then(resolvers[i]);
      return;
    }
    const values = await read((redis) => redis.mgetBuffer(keys));
    for (const [i, resolve] of resolvers.entries()) resolve(values?.[i]);
  }

  return (key) =>
    new Promise((resolve) => {
      open ??= begin();
      open.keys.push(key);
      open.resolvers.push(resolve);
      if (open.keys.length === AT_ONCE) void send(open);
    });
}
