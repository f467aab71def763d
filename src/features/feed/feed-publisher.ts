import type { ClientDatabase } from '../../db/connect.ts';
import { readLineage } from '../../db/lineage.ts';
import type { RedisClient } from '../../redis/redis.ts';
import { CacheKeys, FEED_ID } from '../../snapshot/document/keys.ts';
import { lanesOf } from '../../snapshot/document/lanes.ts';
import {
  type LineageObserver,
  Publisher,
  type PublishObserver,
  type PublishResult,
} from '../../snapshot/publish/publisher.ts';
import { tellChanges } from './events.ts';

/** Publishes, then tells the changes feed what has changed: a list that readers have is never behind its changes. */
export class FeedPublisher extends Publisher {
  readonly #db: ClientDatabase;
  readonly #redis: RedisClient;

  /** As a `Publisher`'s. */
  constructor(
    db: ClientDatabase,
    redis: RedisClient,
    observe?: PublishObserver,
    onLineage?: LineageObserver,
  ) {
    super(db, redis, observe, onLineage);
    this.#db = db;
    this.#redis = redis;
  }

  override publishDirty(): Promise<PublishResult> {
    return this.#thenTell(() => super.publishDirty());
  }

  override sweep(): Promise<PublishResult> {
    return this.#thenTell(() => super.sweep());
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
