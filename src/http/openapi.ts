/** Writes `/openapi.json` from the operations that are routed. Pure. */
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
import { references, type Schema, schemaWriter } from './openapi-schemas.ts';
import type { DescribedOperation, OperationDoc } from './operation.ts';
import { cacheControlParameter } from './protocol/max-age.ts';
import { aboutOf, queryNames } from './protocol/parameters.ts';
import { CONTRACT_SCHEMAS, documented, problemSchema } from './schemas.ts';

const DESCRIPTION = `The catalogue of cloud machines, and the clusters of the token's organization.

- HEAD answers like GET, without a body. Other methods are answered with 405.
- Prices are per minute, in the currency of the header \`Fleetbook-Currency\`.
- Every error is an RFC 9457 problem, \`application/problem+json\`.
- Bodies are plain, gzip or br. \`ETag\` and \`If-None-Match\` work for all of them.
- Operations with the badge *Extension* (\`x-extension\`) are not part of the original contract.`;

type Write = ReturnType<typeof schemaWriter>;

/** @param basePath prefix of every path, e.g. `/catalogue`; may be empty */
export function openApiDocument(
  operations: readonly DescribedOperation[],
  version: string,
  basePath = '',
): Schema {
  const schemas: Record<string, Schema> = {};
  const write = schemaWriter(schemas);
  // RESPONSES refer to it by name.
  write(problemSchema);
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
      {
        name: 'Machines',
        description: 'Machines that can be ordered today, with prices. All prices are without tax',
      },
      { name: 'Clusters', description: "The organization's clusters" },
      { name: 'Changes', description: 'Changes in order, from any point of the last days' },
      { name: 'Exports', description: 'The whole catalogue as files' },
      { name: 'Health', description: 'For monitors and orchestrators; no token is needed' },
    ],
    paths: {
      ...Object.fromEntries(operations.map((each) => [each.path, { get: describe(each, write) }])),
      ...Object.fromEntries(OPEN_PATHS.map((each) => [each.path, { get: describeOpen(each, write) }])),
    },
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'Scopes: `machines:read`, `clusters:read`' },
      },
      schemas,
      headers: HEADERS,
      responses: RESPONSES,
    },
  };
}

function subjectOf(path: string): 'Machines' | 'Clusters' | 'Changes' | 'Exports' {
  if (path.startsWith('/v1/clusters') || path === '/v1/costs' || path === '/v1/lifecycle') return 'Clusters';
  if (path.startsWith('/v1/changes')) return 'Changes';
  return path.startsWith('/v1/exports') ? 'Exports' : 'Machines';
}

function describe(
  { path, scope, parameters, isStrict, mediaType, doc }: DescribedOperation,
  write: Write,
): Schema {
  const inQuery = queryNames(path, parameters);
  const described = Object.entries(parameters).map(([name, schema]) =>
    describeParameter(name, inQuery.includes(name) ? 'query' : 'path', schema),
  );
  // A file has no single time at which all of its data was verified.
  if (!doc.types) described.push(describeParameter('Cache-Control', 'header', cacheControlParameter));
  return {
    operationId: doc.id,
    summary: doc.summary,
    description: scope ? `${doc.description}\n\nNeeds the scope \`${scope}\`.` : doc.description,
    tags: [subjectOf(path)],
    // The reference page shows badges.
    ...(doc.extension && { 'x-extension': true, 'x-badges': [{ name: 'Extension' }] }),
    ...(described.length > 0 && { parameters: described }),
    responses: {
      200: {
        description: doc.summary,
        headers: { ...references('headers', Object.keys(HEADERS)), ...(doc.types && FILE_HEADERS) },
        content: { ...contentOf(doc, write, mediaType), ...doc.otherContent },
      },
      ...responseReferences([
        304,
        ...(isStrict ? [] : ([400] as const)),
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

function contentOf(
  { types, answers, example }: OperationDoc,
  write: Write,
  mediaType = 'application/json',
): Schema {
  const schema = write(answers(CONTRACT_SCHEMAS));
  if (types) return Object.fromEntries(types.map((type) => [type, { schema }]));
  return { [mediaType]: { schema, example } };
}

function describeParameter(name: string, where: 'query' | 'path' | 'header', parameter: z.ZodType) {
  const { description, example, isList } = aboutOf(parameter);
  const { $schema: _, ...schema } = z.toJSONSchema(parameter, { unrepresentable: 'any' });
  // A list is one value with commas.
  const form = isList ? { style: 'form', explode: false } : {};
  return { name, in: where, required: !parameter.isOptional(), ...form, description, schema, example };
}

type OpenPath = Pick<OperationDoc, 'id' | 'summary' | 'description' | 'answers' | 'otherResponses'> & {
  readonly path: string;
  readonly example?: unknown;
};

function describeOpen(open: OpenPath, write: Write): Schema {
  const { id, summary, description, answers, example, otherResponses } = open;
  const schema = write(answers(CONTRACT_SCHEMAS));
  return {
    operationId: id,
    summary,
    description,
    tags: ['Health'],
    security: [],
    responses: {
      200: {
        description: summary,
        headers: references('headers', ['X-Request-Id']),
        content: { 'application/json': { schema, ...(example ? { example } : {}) } },
      },
      ...responseReferences([405, 406]),
      ...otherResponses,
      ...responseReferences(['default']),
    },
  };
}

const OPEN_PATHS: readonly OpenPath[] = [
  {
    path: '/healthz',
    id: 'getHealth',
    summary: 'The process is alive',
    description: 'It says nothing about the data, and is answered as long as the process answers requests.',
    answers: () => z.strictObject({ status: z.literal('ok') }),
    example: { status: 'ok' },
  },
  {
    path: '/readyz',
    id: 'getReadiness',
    summary: 'Ready to answer; otherwise 503 with `checks`',
    description: 'Ready if it can answer the list of providers.',
    answers: () =>
      z.strictObject({
        status: z.literal('ready'),
        checks: documented(z.record(z.string(), z.string()), {
          description: 'By name: `ok`, or a problem that does not prevent answers',
        }),
      }),
    example: { status: 'ready', checks: { catalogue: 'ok', cache: 'ok' } },
    otherResponses: { 503: NOT_READY },
  },
  {
    path: '/openapi.json',
    id: 'getOpenApi',
    summary: 'This document',
    description: 'Describes the operations of this release. It changes only with a release.',
    answers: () => documented(z.unknown(), { type: 'object' }),
    otherResponses: responseReferences([304, 503]),
  },
];
