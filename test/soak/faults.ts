/** The faults of a soak, one at a time. `heal` resolves when the server works again. */
import type { Stack } from '../faults/support/stack.ts';

export interface SoakFault {
  readonly name: string;
  strike(stack: Stack): unknown;
  heal(stack: Stack): unknown;
}

const nothing = () => {};

export const FAULTS: readonly SoakFault[] = [
  { name: 'cache hangs', strike: ({ cacheWay }) => cacheWay.hang(), heal: ({ cacheWay }) => cacheWay.heal() },
  {
    name: 'cache away',
    strike: ({ cacheWay }) => cacheWay.refuse(),
    heal: ({ cacheWay }) => cacheWay.heal(),
  },
  {
    name: 'cache slow',
    strike: ({ cacheWay }) => cacheWay.delay(300),
    heal: ({ cacheWay }) => cacheWay.heal(),
  },
  { name: 'cache cut', strike: ({ cacheWay }) => cacheWay.cut(), heal: nothing },
  { name: 'cache flushed', strike: ({ cacheClient }) => cacheClient.flushall(), heal: nothing },
  { name: 'queues hang', strike: ({ queue }) => queue.pause(), heal: ({ queue }) => queue.resume() },
  { name: 'queues killed', strike: ({ queue }) => queue.kill(), heal: ({ queue }) => queue.restart() },
  {
    name: 'PostgreSQL hangs',
    strike: ({ database }) => database.hang(),
    heal: ({ database }) => database.heal(),
  },
  {
    name: 'PostgreSQL away',
    strike: ({ database }) => database.refuse(),
    heal: ({ database }) => database.heal(),
  },
  { name: 'PostgreSQL cut', strike: ({ database }) => database.cut(), heal: nothing },
  {
    name: 'PostgreSQL killed',
    strike: ({ postgres }) => postgres.kill(),
    heal: ({ postgres }) => postgres.restart(),
  },
];
