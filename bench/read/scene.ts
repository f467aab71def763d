import type { Redis } from 'ioredis';
import type { Filled } from './fill.ts';

/** What every measurement starts from: servers that run, with data in them. */
export interface Scene {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly redis: Redis;
  readonly filled: Filled;
  /** For logs and files. */
  readonly folder: string;
  readonly rounds: number;
  /** Of one stretch of load; whole ones. */
  readonly seconds: number;
  /** Leaves out what is most alike. */
  readonly quick: boolean;
  readonly say: (line: string) => void;
}
