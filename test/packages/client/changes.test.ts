import { describe, expect, it } from 'vitest';
import { EventParser } from '../../../packages/client/src/event-stream.ts';
import {
  type Change,
  type ChangesOptions,
  CursorGone,
  FleetbookClient,
  FleetbookProblem,
} from '../../../packages/client/src/index.ts';
import { until } from '../../support/until.ts';
import { FakeExtensions, MACHINES } from './fake-extensions.ts';

const [machine = expect.unreachable()] = MACHINES;
const added = { type: 'machine.added', machine } as const;
const deleted = (slug: string) => ({ type: 'cluster.deleted', slug }) as const;

async function scene(options: ChangesOptions = {}, streams: FakeExtensions['streams'] = 'live') {
  const stack = new AsyncDisposableStack();
  const fake = stack.use(await FakeExtensions.start());
  fake.streams = streams;
  const client = new FleetbookClient({ url: fake.url, token: fake.token, pauseMs: 1 });
  const received: Change[] = [];
  const interruptions: unknown[] = [];
  function follow(more: ChangesOptions = {}) {
    const stop = new AbortController();
    const ended = (async () => {
      const onInterrupted = (error: unknown) => interruptions.push(error);
      for await (const change of client.changes({ signal: stop.signal, onInterrupted, ...options, ...more }))
        received.push(change);
    })().catch((error: unknown) => error);
    stack.defer(async () => {
      stop.abort();
      await ended;
    });
    return { ended, stop };
  }
  return {
    fake,
    client,
    received,
    interruptions,
    follow,
    ids: () => received.map(({ id }) => id),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

describe('changes', () => {
  it('arrive when they happen, each once and in order, through broken connections', async () => {
    await using given = await scene();
    given.follow();
    await until(() => given.fake.listeners === 1);
    given.fake.happens(added, deleted('a'));
    await until(() => given.received.length === 2);
    expect(given.received).toEqual([
      { ...added, id: 'at-1', at: '2026-11-20T12:00:00Z' },
      { ...deleted('a'), id: 'at-2', at: '2026-11-20T12:00:00Z' },
    ]);
    given.fake.breakStreams();
    given.fake.happens(deleted('b'));
    await until(() => given.received.length === 3);
    given.fake.first((_, response) => void response.destroy());
    given.fake.breakStreams();
    given.fake.happens(deleted('c'));
    await until(() => given.received.length === 4);
    expect(given.ids()).toEqual(['at-1', 'at-2', 'at-3', 'at-4']);
    expect(given.interruptions).toHaveLength(3);
    expect(given.fake.received.map(({ headers }) => headers['last-event-id'])).toEqual([
      undefined,
      'at-0',
      'at-2',
      'at-3',
      'at-3',
    ]);
  });

  it('begin after the known place', async () => {
    await using given = await scene({ after: 'at-1' });
    given.fake.happens(deleted('a'), deleted('b'), deleted('c'));
    given.follow();
    await until(() => given.received.length === 2);
    expect(given.ids()).toEqual(['at-2', 'at-3']);
  });

  it('are not lost between the first request and the first connection', async () => {
    await using given = await scene();
    // The first connection of the stream fails, and a change happens before the second.
    const away = (_: unknown, response: { destroy(): void }) => {
      given.fake.happens(deleted('a'));
      response.destroy();
    };
    given.follow();
    await until(() => given.fake.listeners === 1);
    given.fake.first(away);
    given.fake.breakStreams();
    await until(() => given.received.length === 1);
    expect(given.ids()).toEqual(['at-1']);
  });

  it.each(['refused', 'silent'] as const)('come from pages if a stream is %s', async (streams) => {
    await using given = await scene({ silenceMs: 50 }, streams);
    given.follow();
    await until(() => given.fake.received.some(({ query }) => query.limit === '1000'));
    given.fake.happens(deleted('a'), deleted('b'));
    await until(() => given.received.length === 2);
    await until(() => given.fake.received.at(-1)?.query.after === 'at-2');
    given.fake.happens(deleted('c'));
    await until(() => given.received.length === 3);
    expect(given.ids()).toEqual(['at-1', 'at-2', 'at-3']);
    expect(given.interruptions).toEqual([]);
    expect(given.fake.received.filter(({ headers }) => headers.accept === 'text/event-stream')).toHaveLength(
      1,
    );
  });

  it('resume over a new connection when the old one is silent', async () => {
    await using given = await scene({ silenceMs: 60 });
    given.follow();
    await until(() => given.interruptions.length >= 1);
    given.fake.happens(deleted('a'));
    await until(() => given.received.length === 1);
    expect(String(given.interruptions[0])).toContain('no data for 60 ms');
  });

  it('end with the present place if the known one is gone', async () => {
    await using given = await scene();
    given.fake.happens(deleted('a'), deleted('b'));
    given.fake.forget();
    const error = await given.follow({ after: 'at-1' }).ended;
    expect(error).toBeInstanceOf(CursorGone);
    expect(error).toBeInstanceOf(FleetbookProblem);
    expect(error).toMatchObject({ status: 410, type: 'urn:fleetbook:problem:cursor-gone', next: 'at-2' });
    await expect(given.client.changePage({ after: 'at-1' })).rejects.toBeInstanceOf(CursorGone);
  });

  it('end if the token is revoked', async () => {
    await using given = await scene();
    const { ended } = given.follow();
    await until(() => given.fake.listeners === 1);
    given.fake.revoke();
    expect(await ended).toMatchObject({ name: 'FleetbookProblem', status: 401 });
  });

  it('end with the signal, and leave no connection', async () => {
    await using given = await scene();
    const { ended, stop } = given.follow();
    await until(() => given.fake.listeners === 1);
    stop.abort(new Error('enough'));
    expect(await ended).toEqual(new Error('enough'));
    await until(() => given.fake.listeners === 0);
  });

  it('leave no connection if the loop ends early', async () => {
    await using given = await scene();
    given.fake.happens(deleted('a'));
    for await (const change of given.client.changes({ after: 'at-0' })) {
      expect(change.id).toBe('at-1');
      break;
    }
    await until(() => given.fake.listeners === 0);
    expect(given.fake.received).toHaveLength(1);
  });

  it('can be read by pages', async () => {
    await using given = await scene();
    given.fake.happens(deleted('a'), deleted('b'));
    const start = await given.client.changePage();
    expect(start).toEqual({ changes: [], next: 'at-2', more: false });
    const page = await given.client.changePage({ after: 'at-0', limit: 1 });
    expect(page).toMatchObject({ changes: [{ id: 'at-1' }], next: 'at-1', more: true });
    given.fake.happens(deleted('c'));
    expect((await given.client.changePage({ after: start.next })).changes).toMatchObject([{ slug: 'c' }]);
  });
});

describe('an event stream', () => {
  const STREAM = [
    'retry: 1500\r\n\r\n',
    ': heartbeat\n\n',
    'id: 1\nevent: a\ndata: x\ndata:y\n\n',
    'data\n\n',
    'id\r\ndata: {"ü": "😀"}\r\r',
    'event: dropped\n\n',
    'unknown: 1\ndata:  z\n\ndata: never ended',
  ].join('');
  const EVENTS = [
    { id: '1', type: 'a', data: 'x\ny' },
    { id: '1', type: 'message', data: '' },
    { id: '', type: 'message', data: '{"ü": "😀"}' },
    { id: '', type: 'message', data: ' z' },
  ];

  it('is the same for any split into pieces', () => {
    for (let size = 1; size <= STREAM.length; size += 1) {
      const parser = new EventParser();
      const events = [];
      for (let at = 0; at < STREAM.length; at += size)
        events.push(...parser.push(STREAM.slice(at, at + size)));
      expect(events, `pieces of ${size}`).toEqual(EVENTS);
      expect(parser.retryMs).toBe(1500);
    }
  });
});
