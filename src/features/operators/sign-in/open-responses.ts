/** Cuts open responses, e.g. event streams, within a second after their session or token has ended. */
import type { ServerResponse } from 'node:http';

const CHECK_EVERY_MS = 400;

export function openResponses(live: (keys: readonly string[]) => Promise<ReadonlySet<string>>) {
  const open = new Map<ServerResponse, string>();
  let isChecking = false;
  const check = async () => {
    if (isChecking || open.size === 0) return;
    isChecking = true;
    const responses = [...open];
    // While PostgreSQL does not answer, no session can end, and new requests are refused.
    const good = await live([...new Set(open.values())]).catch(() => undefined);
    for (const [response, key] of good ? responses : []) if (!good?.has(key)) response.destroy();
    isChecking = false;
  };
  const timer = setInterval(() => void check(), CHECK_EVERY_MS).unref();
  return {
    add(key: string, response: ServerResponse) {
      open.set(response, key);
      const remove = () => open.delete(response);
      response.once('finish', remove).once('close', remove);
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
