import type { Redis } from 'ioredis';

const AGAIN_AFTER_MS = 50;

/**
 * Reconnects a client behind Sentinels until it is closed, and its copies too. ioredis 6.0.0 gives up for good if a failover
 * or a refused write disconnects the client while it asks the Sentinels for the master.
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
