/** `/openapi.json`: written out of the very operations that are routed. Pure. */

import { z } from 'zod';
import {
  FILE_HEADERS,
  HEADERS,
  NOT_READY,
  RANGE_RESPONSES,
  RESPONSES,
  responseReferences,
  strict400,
} from './openapi-responses.ts';
import { NAMED, reference, references } from './openapi-schemas.ts';
import type { DescribedOperation, OperationDoc } from './operation.ts';
import { aboutOf, queryNames } from './protocol/parameters.ts';
import type { Schema } from './schemas.ts';

const DESCRIPTION = `The catalogue of cloud machines, and the clusters of the token's organization.

- HEAD answers as GET without the body; any other method: 405.
- Prices are per minute, in the currency that the header \`Fleetbook-Currency\` names.
- Every error is an RFC 9457 problem, \`application/problem+json\`.
- Bodies come plain, in gzip or br; \`ETag\` and \`If-None-Match\` work across these.
- Operations with the badge *Extension* (\`x-extension\`) are not part of the given contract.`;

/**
 * The OpenAPI 3.1 document.
 * @param basePath what comes before every path, e.g. `/catalogue`; empty for none
 */
export function openApiDocument(
  operations: readonly DescribedOperation[],
  version: string,
  basePath = '',
): Schema {
  const paths = {
    ...Object.fromEntries(operations.map((operation) => [operation.path, { get: describe(operation) }])),
    ...OPEN_PATHS,
  };
  // A reader without files or a feed has no answers of theirs.
  const used = JSON.stringify([paths, RESPONSES]);
  const named = [...NAMED].filter(([schema]) => used.includes(JSON.stringify(reference(schema).$ref)));
  return {
    openapi: '3.1.1',
    info: {
      title: 'Fleetbook',
      version,
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: basePath || '/' }],
    security: [{ token: [] }],
    tags: [
      { name: 'Machines', description: 'What can be ordered today, and what it costs' },
      { name: 'Clusters', description: "The organization's clusters" },
      { name: 'Changes', description: 'What has changed, in order, from any point of the last days on' },
      { name: 'Exports', description: 'Everything at once, as files' },
      { name: 'Health', description: 'For whoever keeps the process running; no token is asked for' },
    ],
    paths,
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'Scopes: `machines:read`, `clusters:read`' },
      },
      schemas: Object.fromEntries(named.map(([schema, name]) => [name, schema])),
      headers: HEADERS,
      responses: RESPONSES,
    },
  };
}

function subjectOf(path: string): 'Machines' | 'Clusters' | 'Changes' | 'Exports' {
  if (path.startsWith('/v1/clusters')) return 'Clusters';
  if (path.startsWith('/v1/changes')) return 'Changes';
  return path.startsWith('/v1/exports') ? 'Exports' : 'Machines';
}

function describe({ path, scope, parameters, isStrict, doc }: DescribedOperation): Schema {
  const inQuery = queryNames(path, parameters);
  const described = Object.entries(parameters).map(([name, schema]) =>
    describeParameter(name, inQuery.includes(name) ? 'query' : 'path', schema),
  );
  return {
    operationId: doc.id,
    summary: doc.summary,
    description: scope ? `${doc.description}\n\nNeeds the scope \`${scope}\`.` : doc.description,
    tags: [subjectOf(path)],
    // The badge is what the reference page shows.
    ...(doc.extension && { 'x-extension': true, 'x-badges': [{ name: 'Extension' }] }),
    ...(described.length > 0 && { parameters: described }),
    responses: {
      200: {
        description: doc.summary,
        headers: { ...references('headers', Object.keys(HEADERS)), ...(doc.types && FILE_HEADERS) },
        content: { ...contentOf(doc), ...doc.otherContent },
      },
      ...responseReferences([
        304,
        ...(isStrict || !described.some(({ schema }) => schema.type === 'integer') ? [] : ([400] as const)),
        401,
        403,
        ...(path.includes('{') ? ([404] as const) : []),
        405,
        406,
        429,
        503,
        'default',
      ]),
      ...(isStrict && { 400: strict400(inQuery) }),
      ...(doc.types && RANGE_RESPONSES),
      ...doc.otherResponses,
    },
  };
}

function contentOf({ types, answers, example }: OperationDoc): Schema {
  if (types) return Object.fromEntries(types.map((type) => [type, { schema: answers }]));
  return { 'application/json': { schema: named200(answers), example } };
}

function describeParameter(name: string, where: 'query' | 'path', parameter: z.ZodType) {
  const { description, example, isList } = aboutOf(parameter);
  const { $schema: _, ...schema } = z.toJSONSchema(parameter, { unrepresentable: 'any' });
  // Lists stand between commas, as one value.
  const form = isList ? { style: 'form', explode: false } : {};
  return { name, in: where, required: !parameter.isOptional(), ...form, description, schema, example };
}

/** A schema that has a name is referred to by it. */
function named200(schema: Schema): Schema {
  const { items } = schema as { items?: Schema };
  if (items) return { ...schema, items: reference(items) };
  return NAMED.has(schema) ? reference(schema) : schema;
}

const status = (value: string, more: Readonly<Record<string, Schema>> = {}): Schema => ({
  type: 'object',
  required: ['status', ...Object.keys(more)],
  additionalProperties: false,
  properties: { status: { const: value }, ...more },
});

interface OpenPath {
  readonly id: string;
  readonly summary: string;
  readonly description: string;
  readonly answer: Schema;
  readonly example?: unknown;
  readonly responses?: Schema;
}

function openPath({ id, summary, description, answer, example, responses }: OpenPath): Schema {
  return {
    get: {
      operationId: id,
      summary,
      description,
      tags: ['Health'],
      security: [],
      responses: {
        200: {
          description: summary,
          headers: references('headers', ['X-Request-Id']),
          content: { 'application/json': { schema: answer, ...(example ? { example } : {}) } },
        },
        ...responseReferences([405, 406]),
        ...responses,
        ...responseReferences(['default']),
      },
    },
  };
}

const OPEN_PATHS = {
  '/healthz': openPath({
    id: 'getHealth',
    summary: 'The process is alive',
    description: 'It says nothing of the data, and is answered as long as anything is.',
    answer: status('ok'),
    example: { status: 'ok' },
  }),
  '/readyz': openPath({
    id: 'getReadiness',
    summary: 'Ready to answer; 503 with `checks` while not',
    description: 'Ready when the list of providers can be answered.',
    answer: status('ready', {
      checks: {
        type: 'object',
        additionalProperties: { type: 'string' },
        description: 'By name: `ok`, or what is missing that the answers can do without',
      },
    }),
    example: { status: 'ready', checks: { catalogue: 'ok', cache: 'ok' } },
    responses: { 503: NOT_READY },
  }),
  '/openapi.json': openPath({
    id: 'getOpenApi',
    summary: 'This document',
    description: 'It is written out of the operations that are routed, and changes with a release alone.',
    answer: { type: 'object' },
    responses: responseReferences([304, 503]),
  }),
};
