import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Grant } from '../../domain/grant.ts';
import { guard, guardHook, INVALID_TOKEN, insufficientScope } from '../../http/auth.ts';
import { availableParameter } from '../../http/available.ts';
import type { ApiFeature, RouteDeps } from '../../http/feature.ts';
import { problems } from '../../http/openapi-responses.ts';
import { type DescribedOperation, grantOf, valuesOf } from '../../http/operation.ts';
import { type Full, lifeOf, Places } from '../../http/places.ts';
import { PreparedAnswer } from '../../http/prepared-answer.ts';
import { cutWhenIdle } from '../../http/protocol/connections.ts';
import { accepts, prefersEventStream } from '../../http/protocol/negotiate.ts';
import {
  countParameter,
  invalidParameter,
  parameter,
  requestSchemas,
} from '../../http/protocol/parameters.ts';
import { NOT_ACCEPTABLE, Problem, sendProblem } from '../../http/protocol/problem.ts';
import { TokenChecks } from '../../http/token-check.ts';
import type { Tier } from '../../snapshot/document/answer.ts';
import { Body, hashOf } from '../../snapshot/document/body.ts';
import { CURSOR_TEXT, type Cursor, encodeCursor, Feed } from './cursor.ts';
import { EventStream, type Found, firstFrame, WaitingRequest } from './event-stream.ts';
import { type ChangesPage, CursorGone, type FeedScope } from './feed-reads.ts';
import type { FeedTail } from './feed-tail.ts';
import { changesSchema } from './schema.ts';

/** Of the examples. */
const CURSOR: Cursor = {
  feed: new Feed('7f9c24e8-3b12-4fef-91e0-5a7d4c3b2a19', 'd0c5f1a2-6b7e-4c38-9d1f-2e4a6b8c0f13'),
  position: 4711,
};

const EXAMPLE = encodeCursor(CURSOR);

const parameters = {
  after: parameter(z.string().regex(CURSOR_TEXT), {
    description: 'The cursor behind which changes are told; without it the answer says where the feed is now',
    example: EXAMPLE,
    expected: 'a cursor that an answer has given',
  }).optional(),
  limit: countParameter('Changes at the most', [1, 1000], 100).default(100),
  available: availableParameter,
  wait: countParameter('Seconds to wait for a change where there is none', [0, 30], 25).default(0),
};

const lastEventId = parameter(z.string(), {
  description: 'Counts as `after`',
  example: EXAMPLE,
  expected: 'the id of an event that was sent',
}).optional();
const INVALID_LAST_EVENT_ID = invalidParameter('header', 'Last-Event-ID', lastEventId, undefined);

const noPlace = (detail: string) =>
  new Problem(503, {
    detail: `${detail} Try again after the pause in Retry-After.`,
    headers: { 'retry-after': '5' },
  });

const NO_PLACE: Readonly<Record<Full, Problem>> = {
  process: noPlace('This process holds as many streams and waiting requests as it may.'),
  organization: noPlace(
    'The organization holds half of the streams that this process may hold, its largest share.',
  ),
  token: noPlace('The token holds a quarter of the streams that this process may hold, its largest share.'),
};

function cursorGone(next: Cursor): Problem {
  return new Problem(410, {
    type: 'urn:fleetbook:problem:cursor-gone',
    title: 'Cursor gone',
    detail: 'The changes behind this cursor are not kept. List everything again, then go on from "next".',
    members: { next: encodeCursor(next) },
  });
}

export const changesOperation: DescribedOperation = {
  path: '/v1/changes',
  scope: undefined,
  parameters,
  isStrict: true,
  doc: {
    id: 'listChanges',
    summary: 'Changes of machines and clusters, as they come',
    description: `To keep a copy: take \`next\` of a request without \`after\`, list everything, then follow the changes from there; the first of them may be in the lists already. A change tells the state as it is when it is read, so that to apply one twice does no harm. \`catalogue.changed\` says that all prices are in another currency; each machine follows.

With \`available=all\` machines that are sold out are part of the feed: \`machine.sold_out\` and \`machine.restocked\` take the place of \`machine.withdrawn\` and \`machine.added\`, and \`available\` is false in a machine that is sold out. List with \`available=all\` too, by \`/v1/machines/search\`.

Machines' changes need the scope \`machines:read\`, those of the organization's clusters \`clusters:read\`; a token with one of them gets those of it.

With \`Accept: text/event-stream\` the answer is a stream of server-sent events: \`id\` is the cursor, \`event\` the type, \`data\` the change. \`Last-Event-ID\` counts as \`after\`. The stream ends when the token does, and so does waiting.`,
    answers: changesSchema,
    example: {
      changes: [
        {
          id: EXAMPLE,
          at: '2026-03-01T04:17:02.114392Z',
          type: 'cluster.deleted',
          slug: 'cluster-test',
        },
      ],
      next: EXAMPLE,
      more: false,
    },
    otherContent: {
      'text/event-stream': {
        schema: { type: 'string' },
        example: `id: ${EXAMPLE}\nevent: cluster.deleted\ndata: {…}\n\n`,
      },
    },
    otherResponses: {
      410: problems('What is behind the cursor is not kept, or is of a database that was replaced', {
        cursorGone: cursorGone(CURSOR),
      }),
    },
    extension: true,
  },
};

/** `/v1/changes`. */
export const feedApi =
  (feed: FeedTail): ApiFeature =>
  () => ({ described: [changesOperation], addRoutes: (app, deps) => addChanges(app, feed, deps) });

function addChanges(app: FastifyInstance, feed: FeedTail, deps: RouteDeps): void {
  const { tokens, recorder, withDeadline, rateLimit, sendAnswer, endless, limits } = deps;
  const { streamsAtMost, idleTimeoutMs } = limits;
  const { path } = changesOperation;
  const checks = new TokenChecks(tokens);
  const places = new Places({
    process: streamsAtMost,
    organization: Math.ceil(streamsAtMost / 2),
    token: Math.ceil(streamsAtMost / 4),
  });

  /** Ends what follows the feed when the server closes, and forgets it when its answer is over. */
  function hold(each: EventStream | WaitingRequest, life: AbortSignal): void {
    endless.add(each);
    const leave = () => {
      endless.delete(each);
      each.end();
      feed.leave(each);
    };
    if (life.aborted) leave();
    else life.addEventListener('abort', leave, { once: true });
  }

  function answered(request: FastifyRequest, status: number): void {
    recorder.answered(path, request, status, performance.now() - request.startedAt);
  }

  async function sendPage(
    request: FastifyRequest,
    reply: FastifyReply,
    { changes, next, more, currency }: ChangesPage,
    tier: Tier,
  ): Promise<void> {
    const list = changes.map(({ json }) => json).join(',');
    const bytes = Buffer.from(`{"changes":[${list}],"next":"${encodeCursor(next)}","more":${more}}`);
    const body = new Body(bytes, hashOf(bytes), undefined);
    const prepared = new PreparedAnswer({ body, tier, asOf: undefined, currency });
    if (!prepared.canBeSentTo(request.raw)) await withDeadline(body.compress());
    answered(request, sendAnswer(request, reply, prepared, rateLimit && reply.getHeaders()));
  }

  /** The changes behind a cursor, or the first that come within so many seconds. */
  async function sendChanges(
    request: FastifyRequest,
    reply: FastifyReply,
    scope: FeedScope,
    asked: { readonly after: string; readonly limit: number; readonly wait: number },
  ): Promise<FastifyReply> {
    const { after, limit, wait } = asked;
    const until = Date.now() + wait * 1000;
    const place = await withDeadline(feed.reads.find(after));
    let page = await withDeadline(feed.reads.page(scope, place, limit));
    // What is shown no more has left nothing but its place.
    while (page.changes.length === 0 && page.more)
      page = await withDeadline(feed.reads.page(scope, page.next, limit));
    if (page.changes.length > 0 || wait === 0) {
      await sendPage(request, reply, page, 'postgres');
      return reply;
    }
    const life = lifeOf(request.raw, reply.raw);
    if (life.aborted) return reply.hijack();
    const full = places.enter(grantOf(request), life);
    if (full) return refuse(reply, full);
    request.lasts = true;
    using waiting = new WaitingRequest(scope, until, checks.of(request));
    hold(waiting, life);
    try {
      await feed.follow(waiting, page.next, async () => !life.aborted);
      const found = await waiting.answer;
      if (life.aborted) return reply.hijack();
      if (found === 'invalid token') return sendProblem(reply, INVALID_TOKEN);
      await sendPage(request, reply, found ? cut(found, limit, page) : page, 'memory');
      return reply;
    } finally {
      feed.leave(waiting);
      endless.delete(waiting);
    }
  }

  async function sendStream(
    request: FastifyRequest,
    reply: FastifyReply,
    scope: FeedScope,
    after: string | undefined,
  ): Promise<FastifyReply> {
    const { raw } = reply;
    // Before anything is awaited: the client may go at any moment.
    const life = lifeOf(request.raw, raw);
    const full = places.enter(grantOf(request), life);
    if (full) return refuse(reply, full);
    // What is wrong with the cursor is said before the stream begins.
    const { start, currency } = await withDeadline(feed.beginning(scope, after));
    if (life.aborted) return reply.hijack();
    request.lasts = true;
    const also = rateLimit && reply.getHeaders();
    reply.hijack();
    for (const [name, value] of Object.entries(also ?? {}))
      if (value !== undefined) raw.setHeader(name, value);
    raw.writeHead(200, {
      'x-request-id': request.id,
      'content-type': 'text/event-stream',
      'cache-control': 'private, no-cache',
      vary: 'Authorization, Accept-Encoding',
      'x-accel-buffering': 'no',
      ...(currency === undefined ? {} : { 'fleetbook-currency': currency }),
    });
    answered(request, 200);
    if (request.method === 'HEAD') {
      raw.end();
      return reply;
    }
    cutWhenIdle(request.raw, idleTimeoutMs);
    raw.write(firstFrame(start));
    const stream = new EventStream({
      response: raw,
      life,
      scope,
      start,
      idleTimeoutMs,
      token: checks.of(request),
      onCut: () => {
        feed.counts.cut += 1;
      },
    });
    hold(stream, life);
    // Whoever is cut off goes on where it was: it names the last event that it has.
    await feed.follow(stream, start, () => stream.ready()).catch(() => stream.end());
    if (stream.isOver) feed.leave(stream);
    return reply;
  }

  function refuse(reply: FastifyReply, full: Full): FastifyReply {
    feed.counts[full === 'process' ? 'refused' : 'limited'] += 1;
    return sendProblem(reply, NO_PLACE[full]);
  }

  app.route({
    method: ['GET', 'HEAD'],
    url: path,
    onRequest: [
      (request, _, done) => {
        request.startedAt = performance.now();
        done();
      },
      deps.pressure,
      guardHook(guard(deps, undefined)),
    ],
    schema: requestSchemas(path, parameters, true),
    preValidation: (request, reply, done) => {
      const { machines, organizationId } = scopeOf(grantOf(request));
      const { headers } = request;
      if (!machines && organizationId === undefined) sendProblem(reply, insufficientScope('machines:read'));
      else if (prefersEventStream(headers) || accepts(headers)) done();
      else sendProblem(reply, NOT_ACCEPTABLE);
    },
    onSend: (request, { statusCode }, payload, done) => {
      answered(request, statusCode);
      done(null, payload);
    },
    handler: async (request, reply) => {
      const { after, limit, wait, available } = valuesOf<typeof parameters>(request);
      const scope = { ...scopeOf(grantOf(request)), withSoldOut: available === 'all' };
      try {
        if (prefersEventStream(request.headers)) {
          const last = request.headers['last-event-id'];
          const resumed = last === undefined ? after : String(last);
          if (resumed !== undefined && !CURSOR_TEXT.test(resumed))
            return sendProblem(reply, INVALID_LAST_EVENT_ID);
          return await sendStream(request, reply, scope, resumed);
        }
        if (after !== undefined) return await sendChanges(request, reply, scope, { after, limit, wait });
        const { start, head, currency } = await withDeadline(feed.reads.beginning());
        const more = start.position < head.position;
        await sendPage(request, reply, { changes: [], next: start, more, currency }, 'postgres');
        return reply;
      } catch (error) {
        if (error instanceof CursorGone) return sendProblem(reply, cursorGone(error.next));
        throw error;
      }
    },
  });
}

function scopeOf({ scopes, organizationId }: Grant): FeedScope {
  return {
    machines: scopes.includes('machines:read'),
    organizationId: scopes.includes('clusters:read') ? organizationId : undefined,
  };
}

/** What has come, as far as it was asked for. */
function cut(found: Found, limit: number, { currency }: ChangesPage): ChangesPage {
  const { changes, next } = found;
  const last = changes[limit - 1];
  if (changes.length <= limit || !last) return { changes, next, more: false, currency };
  return {
    changes: changes.slice(0, limit),
    next: { feed: next.feed, position: last.position },
    more: true,
    currency,
  };
}
