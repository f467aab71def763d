/** Clients that leave before their stream has begun, or hold more than their share. */
import { connect, type Server, type Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it, type Mock, vi } from 'vitest';
import { createToken } from '../../../src/db/tokens.ts';
import { SCOPES } from '../../../src/domain/scope.ts';
import type { ApiDeps } from '../../../src/http/app.ts';
import { sceneForEachTest } from '../../snapshot/scene.ts';
import { runs } from '../../support/random.ts';
import { until } from '../../support/until.ts';
import { type ChangesApi, serveChanges } from './changes-api.ts';

const scene = sceneForEachTest();
const serve = (limits: ApiDeps['limits']) => serveChanges(scene, limits);
const token = async (organizationId = scene.sample.a) =>
  (await createToken(scene.store.db, { organizationId, scopes: [...SCOPES] })).token;

/** Stops all reads of streams, before and after each. */
function stops(api: ChangesApi) {
  let open = Promise.withResolvers<void>();
  open.resolve();
  const stops = { seen: 0, first: Number.POSITIVE_INFINITY, underWay: 0 };
  const pass = () => {
    stops.seen += 1;
    return stops.seen >= stops.first ? open.promise : undefined;
  };
  const { feed, tokens } = api.reader;
  for (const [object, name] of [
    [feed.reads, 'page'],
    [feed.reads, 'beginning'],
    [tokens, 'verify'],
  ] as const) {
    const call = (object as unknown as Record<string, (...given: unknown[]) => unknown>)[name]?.bind(object);
    (vi.spyOn(object as never, name as never) as Mock).mockImplementation(async (...given: unknown[]) => {
      stops.underWay += 1;
      try {
        await pass();
        const found = await call?.(...given);
        await pass();
        return found;
      } finally {
        stops.underWay -= 1;
      }
    });
  }
  return {
    /** From the n-th stop on, counted from 1, all reads wait. */
    at(first: number) {
      open = Promise.withResolvers();
      stops.seen = 0;
      stops.first = first;
    },
    /** No read is under way, and no client follows. */
    isCalm() {
      const now = { underWay: stops.underWay, following: feed.size };
      if (now.underWay + now.following > 0) throw new Error(JSON.stringify(now));
      return true;
    },
    isReached: () => stops.seen >= stops.first,
    release() {
      stops.first = Number.POSITIVE_INFINITY;
      open.resolve();
    },
  };
}

/** The server's sockets by the port of their client. One listener for each server collects them. */
const accepted = new WeakMap<Server, Map<number | undefined, Socket>>();

function acceptedBy(server: Server): Map<number | undefined, Socket> {
  const known = accepted.get(server);
  if (known) return known;
  const sockets = new Map<number | undefined, Socket>();
  server.on('connection', (socket) => sockets.set(socket.remotePort, socket));
  accepted.set(server, sockets);
  return sockets;
}

async function connectClient(api: ChangesApi, port: number, requests: readonly string[]) {
  const sockets = acceptedBy(api.app.server);
  const client = connect({ port, host: '127.0.0.1' }).on('error', () => {});
  const server = await until(() => sockets.get(client.localPort));
  client.resume().write(requests.join(''));
  return {
    async leave() {
      const closed = new Promise((resolve) => server.once('close', resolve));
      client.destroy();
      await closed;
    },
  };
}

const portOf = ({ app }: ChangesApi) => {
  const address = app.server.address();
  return typeof address === 'object' ? (address?.port ?? 0) : 0;
};
const requestOf = (bearer: string, query: string, headers = '') =>
  `GET /v1/changes${query} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${bearer}\r\n${headers}\r\n`;
const EVENTS = 'Accept: text/event-stream\r\n';

/** The clients' requests, by the cursor of the feed's end. */
const KINDS = {
  'a stream': (bearer: string) => requestOf(bearer, '', EVENTS),
  'a stream that goes on': (bearer: string, end: string) => requestOf(bearer, `?after=${end}`, EVENTS),
} as const;

async function endOf(api: ChangesApi, bearer: string): Promise<string> {
  const { next } = await api.page('/v1/changes', bearer);
  return (await api.page(`/v1/changes?after=${next}`, bearer)).next;
}

describe('a client that leaves', () => {
  it.each(Object.entries(KINDS))('at any await of %s frees its place', async (_, kind) => {
    await using api = await serve({ streamsAtMost: 1 });
    const bearer = await token();
    const [port, end] = [portOf(api), await endOf(api, bearer)];
    const steps = stops(api);
    let isOver = false;
    let reached = 0;
    for (let step = 1; !isOver; step++) {
      steps.at(step);
      const client = await connectClient(api, port, [kind(bearer, end)]);
      await until(() => steps.isReached() || api.reader.feed.size === 1);
      isOver = !steps.isReached();
      if (!isOver) reached = step;
      await client.leave();
      steps.release();
      await until(() => steps.isCalm());
      const next = await api.get('/v1/changes', bearer, { accept: 'text/event-stream' });
      expect([step, next.statusCode]).toEqual([step, 200]);
      await until(() => api.reader.feed.size === 1);
      next.destroy();
      await until(() => steps.isCalm());
    }
    expect(reached).toBeGreaterThanOrEqual(4);
  });

  it('before its second request on a connection began frees its one place', async () => {
    await using api = await serve({ streamsAtMost: 8 });
    const bearer = await token();
    const request = KINDS['a stream'](bearer);
    for (let i = 0; i < 3; i++) {
      const client = await connectClient(api, portOf(api), [request, request]);
      await until(() => api.reader.feed.size === 1);
      await client.leave();
      await until(() => api.reader.feed.size === 0);
    }
    expect(api.reader.feed.counts).toMatchObject({ refused: 0, limited: 0 });
  });

  it('among many others, at any await, leaves the former number of places', async () => {
    await using api = await serve({ streamsAtMost: 16 });
    const tokens = await Promise.all([token(), token(), token(scene.sample.b), token(scene.sample.b)]);
    const [port, end] = [portOf(api), await endOf(api, tokens[0] ?? '')];
    const steps = stops(api);
    const client = fc.record({
      kind: fc.constantFrom(...Object.values(KINDS)),
      by: fc.nat({ max: 3 }),
      leaves: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(client, { maxLength: 12 }),
        fc.integer({ min: 1, max: 20 }),
        async (all, step) => {
          steps.at(step);
          const clients = await Promise.all(
            all.map(async ({ kind, by, leaves }) => ({
              leaves,
              connected: await connectClient(api, port, [kind(tokens[by] ?? '', end)]),
            })),
          );
          await until(() => steps.isReached() || api.reader.feed.size > 0 || all.length === 0);
          for (const { leaves, connected } of clients) if (leaves) await connected.leave();
          steps.release();
          for (const { leaves, connected } of clients) if (!leaves) await connected.leave();
          await until(() => steps.isCalm());
          const streams = await Promise.all(
            Array.from({ length: 16 }, (_, i) =>
              api.get('/v1/changes', tokens[i % 4] ?? '', { accept: 'text/event-stream' }),
            ),
          );
          expect(streams.map(({ statusCode }) => statusCode)).toEqual(Array(16).fill(200));
          await until(() => api.reader.feed.size === 16);
          for (const stream of streams) stream.destroy();
          await until(() => steps.isCalm());
        },
      ),
      { numRuns: runs(8), endOnFailure: true },
    );
  }, 240_000);
});

describe('places for streams', () => {
  it('are a quarter of all for a token and half of them for an organization', async () => {
    await using api = await serve({ streamsAtMost: 8 });
    const own = await Promise.all([token(), token(), token()]);
    const other = await token(scene.sample.b);
    const open = async (bearer = '') => {
      const answer = await api.get('/v1/changes', bearer, { accept: 'text/event-stream' });
      if (answer.statusCode === 200) return 200;
      expect(answer.headers['retry-after']).toBe('5');
      const { detail } = JSON.parse((await answer.toArray()).join(''));
      return `${answer.statusCode} ${detail.split(' has ')[0]}`;
    };
    const answers = [];
    for (const bearer of [own[0], own[0], own[0], own[1], own[1], own[2], other, other])
      answers.push(await open(bearer));
    expect(answers).toEqual([200, 200, '503 The token', 200, 200, '503 The organization', 200, 200]);
    expect(api.reader.feed.counts).toMatchObject({ refused: 0, limited: 2 });
  });
});
