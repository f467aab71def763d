import type { ComparisonOptions } from './comparison.ts';
import type { PublicationFollower } from './follower.ts';
import type { NewLineage } from './new-lineage.ts';

export interface PublishResult {
  /** Documents that were sent to the cache. */
  readonly published: number;
}

/** Called after every round of publishing with its outcome, the number of documents, and how long it took. */
export type PublishObserver = (outcome: 'published' | 'failed', documents: number, seconds: number) => void;

/** Called when the database gets a new lineage, with what has shown that it was restored or copied. */
export type LineageObserver = (begun: NewLineage, why: string) => void;

export interface PublisherOptions {
  readonly observe?: PublishObserver | undefined;
  readonly onLineage?: LineageObserver | undefined;
  readonly followers?: readonly PublicationFollower[];
  readonly comparison?: ComparisonOptions | undefined;
}
