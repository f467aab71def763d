/** `/openapi.json`: written out of the very operations that are routed. Pure. */
import type { Operation } from './operation.ts';
import type { Parameter } from './parameters.ts';
import {
  clusterSchema,
  machineSchema,
  priceSchema,
  problemSchema,
  providerSchema,
  type Schema,
} from './schemas.ts';

const NAMED: ReadonlyMap<Schema, string> = new Map([
  [machineSchema, 'Machine'],
  [clusterSchema, 'Cluster'],
  [providerSchema, 'Provider'],
  [priceSchema, 'Price'],
  [problemSchema, 'Problem'],
]);

const DESCRIPTION = `The catalogue of cloud machines, and the clusters of the token's organization.

- HEAD answers as GET without the body; any other method: 405.
- Every error is an RFC 9457 problem, \`application/problem+json\`.
- Bodies come plain, in gzip or br; \`ETag\` and \`If-None-Match\` work across these.
- Operations tagged *Extensions* are not part of the given contract.`;

/** The OpenAPI 3.1 document. */
export function openApiDocument(operations: readonly Operation[], version: string): Schema {
  return {
    openapi: '3.1.1',
    info: {
      title: 'Fleetbook',
      version,
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ token: [] }],
    tags: [
      { name: 'Machines', description: 'What can be ordered today, and what it costs' },
      { name: 'Clusters', description: "The organization's clusters" },
      { name: 'Extensions', description: 'Operations beyond the given contract' },
      { name: 'Health', description: 'For whoever keeps the process running; no token is asked for' },
    ],
    paths: {
      ...Object.fromEntries(operations.map((operation) => [operation.path, { get: describe(operation) }])),
      ...OPEN_PATHS,
    },
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'Scopes: `machines:read`, `clusters:read`' },
      },
      schemas: Object.fromEntries([...NAMED].map(([schema, name]) => [name, schema])),
      headers: HEADERS,
      responses: RESPONSES,
    },
  };
}

function describe({ path, scope, parameters, doc }: Operation): Schema {
  const subject = path.startsWith('/v1/clusters') ? 'Clusters' : 'Machines';
  const named = Object.entries(parameters);
  return {
    operationId: doc.id,
    summary: doc.summary,
    description: `${doc.description}\n\nNeeds the scope \`${scope}\`.`,
    tags: doc.extension ? [subject, 'Extensions'] : [subject],
    ...(named.length > 0 && {
      parameters: named.map(([name, parameter]) => describeParameter(name, parameter)),
    }),
    responses: {
      200: {
        description: doc.summary,
        headers: references('headers', Object.keys(HEADERS)),
        content: { 'application/json': { schema: named200(doc.answers), example: doc.example } },
      },
      304: { $ref: '#/components/responses/304' },
      ...(named.some(([, { schema }]) => schema.type === 'integer') && {
        400: { $ref: '#/components/responses/400' },
      }),
      401: { $ref: '#/components/responses/401' },
      403: { $ref: '#/components/responses/403' },
      ...(path.includes('{') && { 404: { $ref: '#/components/responses/404' } }),
      406: { $ref: '#/components/responses/406' },
      503: { $ref: '#/components/responses/503' },
      default: { $ref: '#/components/responses/default' },
    },
  };
}

function describeParameter(
  name: string,
  { in: where, description, schema, example }: Parameter<unknown>,
): Schema {
  return { name, in: where, required: true, description, schema, example };
}

/** A schema of the documents is referred to by its name. */
function named200(schema: Schema): Schema {
  const { items } = schema as { items?: Schema };
  return items ? { ...schema, items: reference(items) } : reference(schema);
}

const reference = (schema: Schema): Schema => ({ $ref: `#/components/schemas/${NAMED.get(schema)}` });

function references(kind: string, names: readonly string[]): Schema {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/${kind}/${name}` }]));
}

const header = (description: string, example: string, required = true): Schema => ({
  description,
  required,
  schema: { type: 'string' },
  example,
});

const HEADERS = {
  ETag: header(
    'Strong, of the content and its coding; equal whichever tier answered',
    '"9Xk2mVfQb0c1Zt4yLr7pAw"',
  ),
  'Fleetbook-As-Of': header(
    'When the data was last verified against its source',
    '2026-03-01T04:17:02Z',
    false,
  ),
  'Fleetbook-Tier': header('Which tier answered: memory, redis or postgres', 'memory'),
  'X-Request-Id': header(
    "The caller's where it is well formed, else made",
    'b9c1f0c2-7d0e-4b51-9a4f-0a4a2f3d6e11',
  ),
};

function problem(description: string, headers: Readonly<Record<string, Schema>> = {}): Schema {
  return {
    description,
    headers: { ...headers, 'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' } },
    content: { 'application/problem+json': { schema: reference(problemSchema) } },
  };
}

const CHALLENGE = header('What to authenticate with', 'Bearer realm="fleetbook", error="invalid_token"');
const RETRY_AFTER = header('Seconds', '1');

const RESPONSES = {
  304: {
    description: 'What `If-None-Match` names is current',
    headers: references('headers', Object.keys(HEADERS)),
  },
  400: problem('A parameter is missing, repeated, or not what it must be; `parameter` names it'),
  401: problem('No token, or one that is not valid', { 'WWW-Authenticate': CHALLENGE }),
  403: problem('The token lacks the scope that `scope` names', { 'WWW-Authenticate': CHALLENGE }),
  404: problem('Nothing there that the token may read'),
  406: problem('`Accept` excludes JSON, or `Accept-Encoding` every coding'),
  503: problem('Nothing fresh is to be had', { 'Retry-After': RETRY_AFTER }),
  default: problem('Any other error'),
};

const status = (value: string): Schema => ({
  type: 'object',
  required: ['status'],
  properties: { status: { const: value } },
});

function openPath(operationId: string, summary: string, answer: Schema, example?: unknown): Schema {
  return {
    get: {
      operationId,
      summary,
      tags: ['Health'],
      security: [],
      responses: {
        200: {
          description: summary,
          content: { 'application/json': { schema: answer, ...(example ? { example } : {}) } },
        },
        default: { $ref: '#/components/responses/default' },
      },
    },
  };
}

const OPEN_PATHS = {
  '/healthz': openPath('getHealth', 'The process is alive', status('ok'), { status: 'ok' }),
  '/readyz': openPath('getReadiness', 'Ready to answer; 503 with `checks` while not', status('ready'), {
    status: 'ready',
    checks: { catalogue: 'ok', cache: 'ok' },
  }),
  '/openapi.json': openPath('getOpenApi', 'This document', { type: 'object' }),
};
