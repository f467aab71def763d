import { LRUCache } from 'lru-cache';

/** Returns an LRU of at most so many entries. With `max`, it would allocate the room for all of them at its start. */
export const lruOfEntries = <K extends {}, V extends {}>(entries: number): LRUCache<K, V> =>
  new LRUCache({ maxSize: entries, sizeCalculation: () => 1 });
