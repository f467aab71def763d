/** `/v1/changes`: pages, and streams of server-sent events. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Counter, Gauge, type Registry } from 'prom-client';
import { z } from 'zod';
import type { ReaderContext, ReaderPart } from '../../app/feature.ts';
import type { Grant } from '../../domain/scope.ts';
import type { ApiFeature, RouteDeps } from '../../http/app.ts';
import { insufficientScope } from '../../http/auth.ts';
import { PreparedAnswer } from '../../http/hot/prepared-answer.ts';
import { type Full, lifeOf, Places, TokenChecks } from '../../http/lasting-answers.ts';
import { problems } from '../../http/openapi-responses.ts';
import { named } from '../../http/openapi-schemas.ts';
import { type DescribedOperation, grantOf, refuseOld, routeOf, valuesOf } from '../../http/operation.ts';
import { cutWhenIdle } from '../../http/protocol/drain.ts';
import { isYoungEnough } from '../../http/protocol/max-age.ts';
import { accepts, prefersEventStream } from '../../http/protocol/negotiate.ts';
import { countParameter, idsParameter, invalidParameter, parameter } from '../../http/protocol/parameters.ts';
import { availableParameter } from '../../http/protocol/place-parameters.ts';
import { NOT_ACCEPTABLE, Problem, sendProblem } from '../../http/protocol/problem.ts';
import {
  clusterSchema,
  documented,
  id,
  instant,
  machineWithFactsSchema,
  pricePerMinute,
  text,
} from '../../http/schemas.ts';
import { Body, hashOf } from '../../snapshot/document/body.ts';
import { FEED_ID } from '../../snapshot/document/keys.ts';
import { EventStream, firstFrame } from './event-stream.ts';
import { FeedTail } from './follow-changes.ts';
import {
  type ChangesPage,
  CURSOR_TEXT,
  type Cursor,
  CursorGone,
  encodeCursor,
  Feed,
  type FeedScope,
} from './read-changes.ts';

export function readFeed(context: ReaderContext): ReaderPart {
  const { config, logger, documents, link, closing } = context;
  const feed = new FeedTail({
    run: (read, options) => documents.postgres(read, options),
    atOnce: Math.ceil(config.settings.POSTGRES_READS / 4),
    logger,
    isLinked: () => link.linked,
  });
  closing.defer(() => feed[Symbol.dispose]());
  documents.addPublicationListener({
    onPublished(id, position) {
      if (id === FEED_ID) feed.advanceTo(position);
    },
    onLineage: () => feed.reset(),
  });
  return { api: feedApi(feed), addMetrics: (registry) => addStreamSeries(registry, feed) };
}

const CURSOR: Cursor = {
  feed: new Feed('7f9c24e8-3b12-4fef-91e0-5a7d4c3b2a19', 'd0c5f1a2-6b7e-4c38-9d1f-2e4a6b8c0f13'),
  position: 4711,
};

const EXAMPLE = encodeCursor(CURSOR);

const parameters = {
  after: parameter(z.string().regex(CURSOR_TEXT), {
    description:
      'Cursor: the answer has the changes behind it. Without it the answer names the end of the feed',
    example: EXAMPLE,
    expected: 'a cursor of an earlier answer',
  }).optional(),
  limit: countParameter('Most changes of the answer', [1, 1000], 100).default(100),
  available: availableParameter,
  machines: idsParameter(
    {
      description:
        'The machines whose changes the answer has; all of them unless given. Changes of clusters stay',
      example: 21,
    },
    100,
  ).optional(),
};

const lastEventId = parameter(z.string(), {
  description: 'Same as `after`',
  example: EXAMPLE,
  expected: 'the id of an event of the stream',
}).optional();
const INVALID_LAST_EVENT_ID = invalidParameter('header', 'Last-Event-ID', lastEventId, undefined);

const noPlace = (detail: string) =>
  new Problem(503, {
    detail: `${detail} Try again after the pause in Retry-After.`,
    headers: { 'retry-after': '5' },
  });

const NO_PLACE: Readonly<Record<Full, Problem>> = {
  process: noPlace('This process has the most streams that it allows.'),
  organization: noPlace(
    'The organization has half of the streams that this process allows, its largest share.',
  ),
  token: noPlace('The token has a quarter of the streams that this process allows, its largest share.'),
};

function cursorGone(next: Cursor): Problem {
  return new Problem(410, {
    type: 'urn:fleetbook:problem:cursor-gone',
    title: 'Cursor gone',
    detail: 'The changes behind this cursor are deleted. List everything again, then continue from "next".',
    members: { next: encodeCursor(next) },
  });
}

const cursor = (description: string) => documented(z.string().regex(CURSOR_TEXT), { description });

const change = (types: readonly string[], subject: z.ZodRawShape) =>
  z.strictObject({
    id: cursor('The cursor of this change'),
    at: instant('When the feed got it'),
    type: z.enum(types),
    ...subject,
  });

const changeSchema = named(
  'Change',
  z.discriminatedUnion('type', [
    change(['machine.added', 'machine.changed', 'machine.sold_out', 'machine.restocked'], {
      machine: machineWithFactsSchema,
    }),
    change(['machine.repriced'], {
      machine: machineWithFactsSchema,
      before: pricePerMinute,
      after: pricePerMinute,
    }),
    change(['machine.withdrawn', 'machine.retired'], {
      machine_id: id('Machine id'),
      provider_id: id('Provider id'),
      region_id: id('Region id'),
    }),
    change(['cluster.created', 'cluster.changed'], { cluster: clusterSchema }),
    change(['cluster.deleted'], { slug: text('Slug of the deleted cluster') }),
    change(['catalogue.changed'], {}),
  ]),
);

const changePageSchema = named(
  'ChangePage',
  z.strictObject({
    changes: z.array(changeSchema),
    next: cursor('Cursor for the next request'),
    more: documented(z.boolean(), { description: 'True if there are more changes now' }),
  }),
);

export const changesOperation: DescribedOperation = {
  path: '/v1/changes',
  scope: undefined,
  parameters,
  isStrict: true,
  doc: {
    id: 'listChanges',
    summary: 'Changes of machines and clusters, in their order',
    description: `To maintain a copy: take \`next\` of a request without \`after\`, list everything, then follow the changes from there. The lists may already contain the first of them. A change has the state at the time of the read, so it may be applied twice. \`catalogue.changed\` means that all prices are in another currency; a change of each machine follows.

With \`available=all\` the feed includes sold-out machines: \`machine.sold_out\` and \`machine.restocked\` replace \`machine.withdrawn\` and \`machine.added\`, and a sold-out machine has \`available: false\`. List with \`available=all\` too, by \`/v1/machines/search\`. \`machines=21,17\` with \`available=all\` follows the stock of these machines.

Changes of machines require the scope \`machines:read\`, changes of the organization's clusters \`clusters:read\`. A token with one scope gets the changes of that scope.

An answer without changes and with \`more: true\` has passed changes of machines or clusters that are no longer shown. Go on from its \`next\`.

With \`Accept: text/event-stream\` the answer is a stream of server-sent events: \`id\` is the cursor, \`event\` the type, \`data\` the change. \`Last-Event-ID\` is the same as \`after\`. A stream ends with its token.`,
    answers: () => changePageSchema,
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
      410: problems('The changes behind the cursor are deleted, or the database was replaced', {
        cursorGone: cursorGone(CURSOR),
      }),
    },
    extension: true,
  },
};

/** Rows of the pages after an empty one, and pages of one answer. An answer without changes then names the place to go on. */
const MORE_ROWS = 500;
const PAGES_AT_MOST = 4;

export const feedApi =
  (feed: FeedTail): ApiFeature =>
  () => ({
    described: [changesOperation],
    addRoutes: (app, deps) => new ChangesRoute(feed, deps).addTo(app),
  });

class ChangesRoute {
  readonly #feed: FeedTail;
  readonly #deps: RouteDeps;
  readonly #checks: TokenChecks;
  readonly #places: Places;

  constructor(feed: FeedTail, deps: RouteDeps) {
    const { streamsAtMost } = deps.limits;
    this.#feed = feed;
    this.#deps = deps;
    this.#checks = new TokenChecks(deps.tokens);
    this.#places = new Places({
      process: streamsAtMost,
      organization: Math.ceil(streamsAtMost / 2),
      token: Math.ceil(streamsAtMost / 4),
    });
  }

  addTo(app: FastifyInstance): void {
    const deps = this.#deps;
    app.route({
      ...routeOf(changesOperation, deps),
      preValidation: (request, reply, done) => {
        const { machines, organizationId } = scopeOf(grantOf(request));
        const { headers } = request;
        if (!machines && organizationId === undefined) sendProblem(reply, insufficientScope('machines:read'));
        else if (prefersEventStream(headers) || accepts(headers)) done();
        else sendProblem(reply, NOT_ACCEPTABLE);
      },
      onSend: (request, { statusCode }, payload, done) => {
        this.#answered(request, statusCode);
        done(null, payload);
      },
      handler: (request, reply) => this.#answer(request, reply),
    });
  }

  async #answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { after, available, machines, ...rest } = valuesOf<typeof parameters>(request);
    const scope = {
      ...scopeOf(grantOf(request)),
      withSoldOut: available === 'all',
      machineIds: machines && new Set(machines),
    };
    try {
      if (prefersEventStream(request.headers)) {
        const last = request.headers['last-event-id'];
        const resumed = last === undefined ? after : String(last);
        if (resumed !== undefined && !CURSOR_TEXT.test(resumed))
          return sendProblem(reply, INVALID_LAST_EVENT_ID);
        return await this.#sendStream(request, reply, scope, resumed);
      }
      // A page of changes has no time at which its data was verified.
      if (!isYoungEnough(request.headers, undefined)) {
        await refuseOld(request, reply, undefined, this.#deps.findSource);
        return reply;
      }
      if (after !== undefined) return await this.#sendChanges(request, reply, scope, { after, ...rest });
      const { start, head, currency } = await this.#deps.withDeadline(this.#feed.reads.beginning());
      const more = start.position < head.position;
      return await this.#sendPage(request, reply, { changes: [], next: start, more, currency });
    } catch (error) {
      if (error instanceof CursorGone) return sendProblem(reply, cursorGone(error.next));
      throw error;
    }
  }

  async #sendPage(
    request: FastifyRequest,
    reply: FastifyReply,
    { changes, next, more, currency }: ChangesPage,
  ): Promise<FastifyReply> {
    const { withDeadline, sendAnswer } = this.#deps;
    const list = changes.map(({ json }) => json).join(',');
    const bytes = Buffer.from(`{"changes":[${list}],"next":"${encodeCursor(next)}","more":${more}}`);
    const body = new Body(bytes, hashOf(bytes), undefined);
    const prepared = new PreparedAnswer({ body, tier: 'postgres', asOf: undefined, currency });
    if (!prepared.hasCodingFor(request.raw)) await withDeadline(body.compress());
    this.#answered(request, sendAnswer(request, reply, prepared));
    return reply;
  }

  async #sendChanges(
    request: FastifyRequest,
    reply: FastifyReply,
    scope: FeedScope,
    { after, limit }: { after: string; limit: number },
  ): Promise<FastifyReply> {
    const { withDeadline } = this.#deps;
    const { reads } = this.#feed;
    // Before the first await: the client may disconnect at any moment.
    const life = lifeOf(request.raw, reply.raw);
    const place = await withDeadline(reads.find(after));
    let page = await withDeadline(reads.page(scope, place, limit));
    // A page is empty if the scope no longer shows the objects of its changes.
    for (let pages = 1; page.changes.length === 0 && page.more && pages < PAGES_AT_MOST; pages++) {
      if (life.aborted) return reply.hijack();
      const rows = Math.max(limit, MORE_ROWS);
      page = cut(await withDeadline(reads.page(scope, page.next, rows)), limit);
    }
    if (life.aborted) return reply.hijack();
    return this.#sendPage(request, reply, page);
  }

  async #sendStream(
    request: FastifyRequest,
    reply: FastifyReply,
    scope: FeedScope,
    after: string | undefined,
  ): Promise<FastifyReply> {
    const { withDeadline, limits } = this.#deps;
    const feed = this.#feed;
    const { raw } = reply;
    // Before the first await: the client may disconnect at any moment.
    const life = lifeOf(request.raw, raw);
    const full = this.#places.enter(grantOf(request), life);
    if (full) return this.#refuse(reply, full);
    // A wrong cursor is rejected before the stream begins.
    const { start, currency } = await withDeadline(feed.beginning(scope, after));
    if (life.aborted) return reply.hijack();
    request.lasts = true;
    const rateFields = request.rateFields ?? [];
    reply.hijack();
    for (let i = 0; i < rateFields.length; i += 2)
      raw.setHeader(rateFields[i] ?? '', rateFields[i + 1] ?? '');
    raw.cork();
    raw.writeHead(200, streamHeaders(request.id, currency));
    // With the first frame in the same string, Node would keep each header field in memory as a separate string.
    raw.flushHeaders();
    this.#answered(request, 200);
    if (request.method === 'HEAD') {
      raw.end();
      return reply;
    }
    const { idleTimeoutMs } = limits;
    cutWhenIdle(request.raw, idleTimeoutMs);
    raw.write(firstFrame(start));
    raw.uncork();
    const token = this.#checks.of(request);
    const onCut = () => {
      feed.counts.cut += 1;
    };
    const stream = new EventStream({ response: raw, life, scope, start, idleTimeoutMs, token, onCut });
    this.#register(stream, life);
    // A client that is cut off reconnects with its last event id.
    await feed.follow(stream, start, () => stream.ready()).catch(() => stream.end());
    if (stream.isOver) feed.leave(stream);
    return reply;
  }

  /** Ends a stream when the server closes, and removes it when its answer is over. */
  #register(stream: EventStream, life: AbortSignal): void {
    const { endless } = this.#deps;
    endless.add(stream);
    const leave = () => {
      endless.delete(stream);
      stream.end();
      this.#feed.leave(stream);
    };
    if (life.aborted) leave();
    else life.addEventListener('abort', leave, { once: true });
  }

  #answered(request: FastifyRequest, status: number): void {
    this.#deps.recorder.answered(
      changesOperation.path,
      request,
      status,
      performance.now() - request.startedAt,
    );
  }

  #refuse(reply: FastifyReply, full: Full): FastifyReply {
    this.#feed.counts[full === 'process' ? 'refused' : 'limited'] += 1;
    return sendProblem(reply, NO_PLACE[full]);
  }
}

function streamHeaders(requestId: string, currency: string | undefined): Record<string, string> {
  return {
    'x-request-id': requestId,
    'content-type': 'text/event-stream',
    'cache-control': 'private, no-cache',
    vary: 'Authorization, Accept-Encoding',
    'x-accel-buffering': 'no',
    ...(currency === undefined ? {} : { 'fleetbook-currency': currency }),
  };
}

function scopeOf({ scopes, organizationId }: Grant): FeedScope {
  return {
    shareOf: organizationId,
    machines: scopes.includes('machines:read'),
    organizationId: scopes.includes('clusters:read') ? organizationId : undefined,
  };
}

function cut(page: ChangesPage, limit: number): ChangesPage {
  const last = page.changes[limit - 1];
  if (page.changes.length <= limit || !last) return page;
  const next = { feed: page.next.feed, position: last.position };
  return { ...page, changes: page.changes.slice(0, limit), next, more: true };
}

function addStreamSeries(registry: Registry, streams: Pick<FeedTail, 'size' | 'counts'>): void {
  const registers = [registry];
  new Gauge({
    name: 'fleetbook_streams',
    help: 'Open streams of /v1/changes',
    registers,
    collect() {
      this.set(streams.size);
    },
  });
  new Counter({
    name: 'fleetbook_streams_ended_total',
    help: 'Streams that ended early, by reason; cut: the client was too slow; refused: the process had the most streams, see MAX_CONNECTIONS; limited: the token or its organization had its largest share',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      for (const reason of ['cut', 'refused', 'limited'] as const)
        this.inc({ reason }, streams.counts[reason]);
    },
  });
}
