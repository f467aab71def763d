import type { Redis } from 'ioredis';

const AGAIN_AFTER_MS = 50;

/**
 * A client behind Sentinels that is disconnected while it asks them for the master is given up for good (tried with
 * ioredis 6.0.0: a failover that is told meanwhile, or a refused write, does it). This one connects again unless somebody
 * has closed it, and so do its copies.
 */
export function keepConnecting(redis: Redis): Redis {
  let isClosed = false;
  const { disconnect, quit, duplicate } = redis;
  redis.disconnect = (reconnects = false) => {
    isClosed ||= !reconnects;
    disconnect.call(redis, reconnects);
  };
  redis.quit = (...callback) => {
    isClosed = true;
    return quit.apply(redis, callback);
  };
  redis.duplicate = ((...options: Parameters<Redis['duplicate']>) =>
    keepConnecting(duplicate.apply(redis, options))) as Redis['duplicate'];
  redis.on('end', () => {
    if (isClosed) return;
    setTimeout(() => {
      if (!isClosed && redis.status === 'end') redis.connect().catch(() => {});
    }, AGAIN_AFTER_MS).unref();
  });
  return redis;
}
