import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { troubles, underLoad } from './support/row.ts';
import type { Organization, Reader, Stack } from './support/stack.ts';

/** At once, to each reader in turn. */
const CONNECTIONS = 100;
const SEARCHES = 50;
/** Milliseconds from one reset to the next connections. */
const PAUSE_MS = 1500;

/** Opens the connections, sends searches on each, and resets all of them. */
async function searchAndReset({ url }: Reader, { token }: Organization): Promise<void> {
  const { hostname, port } = new URL(url);
  const clients = Array.from({ length: CONNECTIONS }, () =>
    connect({ host: hostname, port: Number(port) }).on('error', () => {}),
  );
  await Promise.all(clients.map((client) => once(client, 'connect')));
  for (const client of clients)
    for (let i = 0; i < SEARCHES; i++)
      client.write(
        `GET /v1/machines/search?max_price=0.${i + 1}&limit=500 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`,
      );
  await sleep(0);
  for (const client of clients) client.resetAndDestroy();
}

it('clients that send many searches and leave keep no reader from the others', async () => {
  let isOver = false;
  let resets = 0;
  let attacking: Promise<void> | undefined;
  const attack = async ({ readers, organizations: [first] }: Stack) => {
    for (; !isOver; await sleep(PAUSE_MS))
      for (const reader of readers) {
        await searchAndReset(reader, first ?? expect.unreachable());
        resets += CONNECTIONS;
      }
  };
  const outcome = await underLoad({
    fault: `${CONNECTIONS} connections send ${SEARCHES} searches each and are reset at once, again and again, for {seconds}`,
    strike(stack) {
      attacking = attack(stack);
    },
    async heal() {
      isOver = true;
      await attacking;
    },
  });
  expect(resets).toBeGreaterThan(2 * CONNECTIONS);
  expect(troubles(outcome.measured)).toEqual({});
});
