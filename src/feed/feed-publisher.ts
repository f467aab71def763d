import type { ClientDatabase } from '../db/connect.ts';
import { tellChanges } from '../db/feed-events.ts';
import { readLineage } from '../db/lineage.ts';
import type { RedisClient } from '../db/redis.ts';
import { CacheKeys, FEED_ID } from '../snapshot/document/keys.ts';
import { lanesOf } from '../snapshot/document/lanes.ts';
import { Publisher, type PublisherOptions, type PublishResult } from '../snapshot/publish/publisher.ts';

/** Publishes, then tells the changes feed what has changed: a list that readers have is never behind its changes. */
export class FeedPublisher extends Publisher {
  readonly #db: ClientDatabase;
  readonly #redis: RedisClient;

  constructor(db: ClientDatabase, redis: RedisClient, options?: PublisherOptions) {
    super(db, redis, options);
    this.#db = db;
    this.#redis = redis;
  }

  override publishDirty(): Promise<PublishResult> {
    return this.#thenTell(() => super.publishDirty());
  }

  override compare(): Promise<PublishResult> {
    return this.#thenTell(() => super.compare());
  }

  async #thenTell(publish: () => Promise<PublishResult>): Promise<PublishResult> {
    let result: PublishResult;
    try {
      result = await publish();
    } catch (error) {
      // Without the cache readers have their lists from Postgres, and so they have the feed.
      await this.#tell('all').catch(() => {});
      throw error;
    }
    await this.#tell('published');
    return result;
  }

  async #tell(which: 'published' | 'all'): Promise<void> {
    const { position, changes } = await tellChanges(this.#db, which);
    if (changes === 0 || this.#redis.status !== 'ready') return;
    const keys = new CacheKeys(await readLineage(this.#db.$client), lanesOf(this.#redis));
    // Readers that hear nothing look for themselves.
    await this.#redis
      .fleetbookAnnounce(keys.revision(keys.laneOf(FEED_ID)), keys.published, FEED_ID, String(position))
      .catch(() => {});
  }
}
