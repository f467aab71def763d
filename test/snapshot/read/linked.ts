import { Consistency } from '../../../src/snapshot/read/consistency.ts';

/** What a memory needs of a reader that stays linked in one epoch, and knows no stamps. */
export const LINKED = {
  rules: new Consistency({
    link: { linked: true, epoch: 1, confirmedAt: () => 0, lastHeartbeatAt: 0 },
    now: () => 0,
    staleLimitMs: 0,
    tokenStaleLimitMs: 0,
  }),
  freshness: { timeOf: () => undefined },
};
