import type { Redis } from 'ioredis';
import type { Filled } from './fill.ts';

/** The start of each measurement: running servers with data. */
export interface Scene {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly redis: Redis;
  readonly filled: Filled;
  /** For logs and files. */
  readonly folder: string;
  readonly rounds: number;
  /** Seconds of one stretch of load, a whole number. */
  readonly seconds: number;
  /** Omits the most similar measurements. */
  readonly quick: boolean;
  readonly say: (line: string) => void;
}
