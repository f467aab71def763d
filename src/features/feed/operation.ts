/** The parameters and the description of `/v1/changes`. */
import { z } from 'zod';
import { problems } from '../../http/openapi-responses.ts';
import { named } from '../../http/openapi-schemas.ts';
import type { DescribedOperation } from '../../http/operation.ts';
import type { Full } from '../../http/places.ts';
import {
  availableParameter,
  countParameter,
  invalidParameter,
  parameter,
} from '../../http/protocol/parameters.ts';
import { Problem } from '../../http/protocol/problem.ts';
import {
  clusterSchema,
  documented,
  id,
  instant,
  machineWithFactsSchema,
  pricePerMinute,
  text,
} from '../../http/schemas.ts';
import { CURSOR_TEXT, type Cursor, encodeCursor, Feed } from './cursor.ts';

const CURSOR: Cursor = {
  feed: new Feed('7f9c24e8-3b12-4fef-91e0-5a7d4c3b2a19', 'd0c5f1a2-6b7e-4c38-9d1f-2e4a6b8c0f13'),
  position: 4711,
};

const EXAMPLE = encodeCursor(CURSOR);

export const parameters = {
  after: parameter(z.string().regex(CURSOR_TEXT), {
    description:
      'Cursor: the answer has the changes behind it. Without it the answer names the end of the feed',
    example: EXAMPLE,
    expected: 'a cursor of an earlier answer',
  }).optional(),
  limit: countParameter('Most changes of the answer', [1, 1000], 100).default(100),
  available: availableParameter,
};

const lastEventId = parameter(z.string(), {
  description: 'Same as `after`',
  example: EXAMPLE,
  expected: 'the id of an event of the stream',
}).optional();
export const INVALID_LAST_EVENT_ID = invalidParameter('header', 'Last-Event-ID', lastEventId, undefined);

const noPlace = (detail: string) =>
  new Problem(503, {
    detail: `${detail} Try again after the pause in Retry-After.`,
    headers: { 'retry-after': '5' },
  });

export const NO_PLACE: Readonly<Record<Full, Problem>> = {
  process: noPlace('This process has the most streams that it allows.'),
  organization: noPlace(
    'The organization has half of the streams that this process allows, its largest share.',
  ),
  token: noPlace('The token has a quarter of the streams that this process allows, its largest share.'),
};

export function cursorGone(next: Cursor): Problem {
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

const changesSchema = named(
  'Changes',
  z.strictObject({
    changes: z.array(
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
    ),
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

With \`available=all\` the feed includes sold-out machines: \`machine.sold_out\` and \`machine.restocked\` replace \`machine.withdrawn\` and \`machine.added\`, and a sold-out machine has \`available: false\`. List with \`available=all\` too, by \`/v1/machines/search\`.

Changes of machines require the scope \`machines:read\`, changes of the organization's clusters \`clusters:read\`. A token with one scope gets the changes of that scope.

An answer without changes and with \`more: true\` has passed changes of machines or clusters that are no longer shown. Go on from its \`next\`.

With \`Accept: text/event-stream\` the answer is a stream of server-sent events: \`id\` is the cursor, \`event\` the type, \`data\` the change. \`Last-Event-ID\` is the same as \`after\`. A stream ends with its token.`,
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
      410: problems('The changes behind the cursor are deleted, or the database was replaced', {
        cursorGone: cursorGone(CURSOR),
      }),
    },
    extension: true,
  },
};
