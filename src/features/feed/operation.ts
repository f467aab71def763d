/** How `/v1/changes` is called and described. */
import { z } from 'zod';
import { availableParameter } from '../../http/available.ts';
import { problems } from '../../http/openapi-responses.ts';
import type { DescribedOperation } from '../../http/operation.ts';
import type { Full } from '../../http/places.ts';
import { countParameter, invalidParameter, parameter } from '../../http/protocol/parameters.ts';
import { Problem } from '../../http/protocol/problem.ts';
import { CURSOR_TEXT, type Cursor, encodeCursor, Feed } from './cursor.ts';
import { changesSchema } from './schema.ts';

/** Of the examples. */
const CURSOR: Cursor = {
  feed: new Feed('7f9c24e8-3b12-4fef-91e0-5a7d4c3b2a19', 'd0c5f1a2-6b7e-4c38-9d1f-2e4a6b8c0f13'),
  position: 4711,
};

const EXAMPLE = encodeCursor(CURSOR);

export const parameters = {
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
export const INVALID_LAST_EVENT_ID = invalidParameter('header', 'Last-Event-ID', lastEventId, undefined);

const noPlace = (detail: string) =>
  new Problem(503, {
    detail: `${detail} Try again after the pause in Retry-After.`,
    headers: { 'retry-after': '5' },
  });

export const NO_PLACE: Readonly<Record<Full, Problem>> = {
  process: noPlace('This process holds as many streams and waiting requests as it may.'),
  organization: noPlace(
    'The organization holds half of the streams that this process may hold, its largest share.',
  ),
  token: noPlace('The token holds a quarter of the streams that this process may hold, its largest share.'),
};

export function cursorGone(next: Cursor): Problem {
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
