import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { expect, it } from 'vitest';
import { type ReplicatedPostgres, startReplicatedPostgres } from '../engines/postgres-replica.ts';
import { Copy, Unanswered } from '../features/feed/copy.ts';
import { faultProxy } from '../support/fault-proxy.ts';
import { until } from '../support/until.ts';
import { troubles, underLoad } from './support/row.ts';
import type { Organization, Reader, Stack } from './support/stack.ts';

/** Clients with a copy, each of another organization. */
const COPIES = 10;
/** Milliseconds after which readers connect to the other server. */
const TURN_EVERY_MS = 500;
/** Milliseconds between two requests of a client. */
const PAUSE_MS = 100;

/** Requests changes as a follower does. */
const requestOf =
  ({ url }: Reader, { token }: Organization) =>
  async (path: string) => {
    const response = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } });
    return { status: response.status, body: await response.text() };
  };

it.each([
  {
    how: 'in turn',
    fault: 'One address leads to two servers in turn, one of them behind, for {seconds}',
    turnEveryMs: TURN_EVERY_MS,
    isCutAtTurns: true,
  },
  {
    how: 'at once',
    fault: 'The connections of one address lead to two servers, one of them behind, for {seconds}',
    // So the connections of one reader lead to both servers.
    turnEveryMs: 5,
    isCutAtTurns: false,
  },
])(
  'copies miss no change if one address leads to two servers $how, and one is behind',
  async ({ fault, turnEveryMs, isCutAtTurns }) => {
    let servers: ReplicatedPostgres | undefined;
    const both = () => servers ?? expect.unreachable('the stack has started them');
    const copies: { readonly copy: Copy; readonly organization: Organization }[] = [];
    let turning: NodeJS.Timeout | undefined;
    let isOver = false;
    let following: Promise<unknown> | undefined;
    let read = 0;

    const begin = async ({ readers: [reader], organizations }: Stack) => {
      for (const organization of organizations.slice(0, COPIES)) {
        const copy = new Copy(requestOf(reader ?? expect.unreachable(), organization));
        copies.push({ copy: await copy.begin(), organization });
      }
    };
    const follow = async (copy: Copy) => {
      for (; !isOver; await sleep(PAUSE_MS))
        try {
          await copy.follow();
          read += 1;
        } catch (error) {
          if (!(error instanceof Unanswered) || error.status !== 503) throw error;
        }
    };
    const outcome = await underLoad({
      fault,
      stack: {
        postgres: async () => {
          const started = await startReplicatedPostgres({ maxConnections: 200 });
          servers = started;
          return { ...started.primary, [Symbol.asyncDispose]: () => started[Symbol.asyncDispose]() };
        },
        readersDatabase: () => faultProxy(both().replica.url),
      },
      async strike(stack) {
        await begin(stack);
        both().stream.hang();
        let turns = 0;
        turning = setInterval(() => {
          turns += 1;
          const server = turns % 2 === 0 ? both().replica : both().primary;
          stack.readersWay.lead(server.url);
          if (isCutAtTurns) stack.readersWay.cut();
        }, turnEveryMs);
        if (!isCutAtTurns) stack.readersWay.cut();
        following = Promise.all(copies.map(({ copy }) => follow(copy)));
      },
      async heal() {
        await both().stream.heal();
        clearInterval(turning);
        isOver = true;
        await following;
        await both().caughtUp();
      },
      async settled({ readers: [reader] }) {
        for (const { copy, organization } of copies) {
          await until(
            async () => {
              const lists = new Copy(requestOf(reader ?? expect.unreachable(), organization));
              await Promise.all([lists.list(), copy.follow()]);
              return isDeepStrictEqual(copy.state, lists.state);
            },
            { what: 'a copy to be what the lists say' },
          );
          expect(copy.relisted).toBe(0);
        }
      },
    });
    expect(read).toBeGreaterThan(COPIES);
    expect(troubles(outcome.measured)).toEqual({});
  },
);
