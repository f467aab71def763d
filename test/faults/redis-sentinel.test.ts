/** Cache and queues on a master behind Sentinels. The master fails under load. */
import { describe, expect, it } from 'vitest';
import {
  type SentinelServer,
  startTestSentinels,
  type TestSentinels,
  type TestSentinelsOptions,
} from '../engines/redis-sentinel.ts';
import { CAN_BE_PARTED } from '../engines/server-network.ts';
import { isCacheBack } from './support/linked.ts';
import { type Outcome, troubles, underLoad, wrongOrNone } from './support/row.ts';

/** Seconds from the fault until readers and publisher use the new master. Sentinels notice within a second. */
const RECOVERED_WITHIN_S = 15;

/** Breaks the master of new servers under load. @param fault the text of the table */
async function onMaster(
  fault: string,
  strike: (master: SentinelServer, sentinels: TestSentinels) => Promise<void> | void,
  heal: (master: SentinelServer, sentinels: TestSentinels) => Promise<void> | void,
  options?: TestSentinelsOptions,
): Promise<Outcome> {
  let sentinels: TestSentinels | undefined;
  let struck: SentinelServer | undefined;
  const theirs = () => sentinels ?? expect.unreachable('the stack has started them');
  return underLoad({
    fault,
    stack: {
      async engine() {
        sentinels = await startTestSentinels(options);
        return sentinels;
      },
    },
    async strike() {
      struck = await theirs().master();
      await strike(struck, theirs());
    },
    recovers: async (stack) => (await theirs().master()) !== struck && isCacheBack(stack),
    async heal() {
      if (struck) await heal(struck, theirs());
    },
  });
}

describe('readers serve nothing wrong, nothing old and no error while a master behind Sentinels', () => {
  it('is killed', async () => {
    const { measured, recoverySeconds } = await onMaster(
      'The master of Redis is killed, and Sentinels name another',
      (master) => master.kill(),
      () => {},
    );
    expect(troubles(wrongOrNone(measured))).toEqual({});
    expect(recoverySeconds).toBeLessThan(RECOVERED_WITHIN_S);
  });

  it('hangs, and returns after a failover', async () => {
    const { measured, recoverySeconds } = await onMaster(
      'The master of Redis hangs for {seconds}, and Sentinels name another',
      (master) => master.pause(),
      (master) => master.resume(),
    );
    expect(troubles(wrongOrNone(measured))).toEqual({});
    expect(recoverySeconds).toBeLessThan(RECOVERED_WITHIN_S);
  });

  it('is cut off with one Sentinel from the others, and not from its clients', CAN_BE_PARTED, async () => {
    const { measured, recoverySeconds } = await onMaster(
      'The master of Redis is cut off with a Sentinel for {seconds}, and the other Sentinels name another',
      (_, sentinels) => sentinels.part(),
      (_, sentinels) => sentinels.heal(),
      { canBeParted: true },
    );
    expect(troubles(wrongOrNone(measured))).toEqual({});
    expect(recoverySeconds).toBeLessThan(RECOVERED_WITHIN_S);
  });
});
