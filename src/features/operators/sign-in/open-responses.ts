/** Open responses of sessions and tokens. Those of an ended one are cut within a second: event streams, downloads. */
import type { ServerResponse } from 'node:http';

/** Milliseconds between two checks. */
const CHECK_EVERY_MS = 400;

export interface OpenResponses extends Disposable {
  /** @param key of the session or token, as `live` knows it */
  add(key: string, response: ServerResponse): void;
}

/** @param live returns those of the keys whose session or token has not ended */
export function openResponses(
  live: (keys: readonly string[]) => Promise<ReadonlySet<string>>,
): OpenResponses {
  const open = new Map<ServerResponse, string>();
  let isChecking = false;
  const check = async () => {
    if (isChecking || open.size === 0) return;
    isChecking = true;
    const responses = [...open];
    // While PostgreSQL is away no session can be ended, and new requests are refused.
    const good = await live([...new Set(open.values())]).catch(() => undefined);
    for (const [response, key] of good ? responses : []) if (!good?.has(key)) response.destroy();
    isChecking = false;
  };
  const timer = setInterval(() => void check(), CHECK_EVERY_MS).unref();
  return {
    add(key, response) {
      open.set(response, key);
      const remove = () => open.delete(response);
      response.once('finish', remove).once('close', remove);
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
