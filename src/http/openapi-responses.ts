/** Named headers and responses of `/openapi.json`. Examples are real answers. */
import { INVALID_TOKEN, insufficientScope, UNAUTHENTICATED } from './auth.ts';
import { reference, references, type Schema } from './openapi-schemas.ts';
import { dataTooOld } from './protocol/max-age.ts';
import { idParameter, invalidParameter, unknownParameter } from './protocol/parameters.ts';
import {
  INTERNAL_ERROR,
  METHOD_NOT_ALLOWED,
  NOT_ACCEPTABLE,
  NOT_FOUND,
  type Problem,
  unavailable,
} from './protocol/problem.ts';
import { unsatisfiable } from './protocol/range.ts';
import { tooMany } from './protocol/rate-limit.ts';
import { notReady } from './routes/health.ts';

const REQUEST_ID = 'b9c1f0c2-7d0e-4b51-9a4f-0a4a2f3d6e11';

const header = (description: string, example: string, required = true): Schema => ({
  description,
  required,
  schema: { type: 'string' },
  example,
});

export const HEADERS = {
  ETag: header(
    'Strong; depends on content and coding, not on the tier that answered',
    '"9Xk2mVfQb0c1Zt4yLr7pAw"',
  ),
  'Fleetbook-As-Of': header(
    'When the data was last verified against its source',
    '2026-03-01T04:17:02Z',
    false,
  ),
  'Fleetbook-Currency': {
    ...header(
      'Currency of the prices, which are without tax, ISO 4217; absent before the first prices',
      'USD',
      false,
    ),
    schema: { type: 'string', pattern: '^[A-Z]{3}$' },
  },
  'Fleetbook-Tier': {
    ...header('Which tier answered', 'memory'),
    schema: { type: 'string', enum: ['memory', 'redis', 'postgres', 'disk'] },
  },
  'X-Request-Id': header("The caller's id if it is well formed, otherwise a generated one", REQUEST_ID),
};

export const FILE_HEADERS = {
  'Accept-Ranges': header('The file can be requested in parts', 'bytes'),
  'Content-Disposition': header('Suggested file name', 'attachment; filename="machines.parquet"'),
  'Fleetbook-Export-Version': header(
    'Identifies the state of the catalogue in the file',
    'w2Yv0rIq3c8kT5dJm1xZfA',
  ),
};

export function problems(
  description: string,
  examples: Readonly<Record<string, Problem>>,
  headers: Readonly<Record<string, Schema>> = {},
): Schema {
  const shown = Object.entries(examples).map(([name, problem]) => [
    name,
    { value: JSON.parse(problem.body(REQUEST_ID).toString()) as unknown },
  ]);
  return {
    description,
    headers: { ...headers, ...references('headers', ['X-Request-Id']) },
    content: {
      'application/problem+json': {
        schema: reference('schemas', 'Problem'),
        examples: Object.fromEntries(shown),
      },
    },
  };
}

const challenge = (problem: Problem) =>
  header('Required authentication', problem.headers['www-authenticate'] ?? '');
const RETRY_AFTER = header('Seconds', '1');
const LACKING = insufficientScope('clusters:read');

const TOO_OLD = dataTooOld({
  asOf: '2026-03-01T04:17:02Z',
  maxAge: 3600,
  now: Date.parse('2026-03-01T06:17:02Z'),
  source: {
    id: 'hetzner',
    nextRun: { dueAt: '2026-03-01T10:17:00Z', retryAfterSeconds: 14_398 },
  },
});

const INVALID = 'A parameter is missing, repeated or invalid; `parameter` names it';
const invalidExample = invalidParameter(
  'query',
  'region',
  idParameter({ description: 'Region id', example: 3, listedBy: '/v1/providers' }),
  'fsn1',
);

export const RESPONSES = {
  304: {
    description: 'The version in `If-None-Match` is current',
    headers: references('headers', Object.keys(HEADERS)),
  },
  400: problems(INVALID, { invalidParameter: invalidExample }),
  401: problems(
    'The token is missing or not valid',
    { noToken: UNAUTHENTICATED, invalidToken: INVALID_TOKEN },
    { 'WWW-Authenticate': challenge(INVALID_TOKEN) },
  ),
  403: problems(
    'The token lacks the scope that `scope` names',
    { insufficientScope: LACKING },
    { 'WWW-Authenticate': challenge(LACKING) },
  ),
  404: problems('Nothing that the token may read has this path', { notFound: NOT_FOUND }),
  405: problems(
    'Another method than GET and HEAD',
    { methodNotAllowed: METHOD_NOT_ALLOWED },
    { Allow: header('The allowed methods', METHOD_NOT_ALLOWED.headers.allow ?? '') },
  ),
  406: problems('`Accept` excludes the media type of the answer, or `Accept-Encoding` every coding', {
    notAcceptable: NOT_ACCEPTABLE,
  }),
  429: problems(
    'The token has exceeded the limit that the operator has set, or too many requests of the connection wait for their answers',
    { tooManyRequests: tooMany(600, 21) },
    {
      'Retry-After': { ...RETRY_AFTER, example: '21' },
      'RateLimit-Limit': header('Allowed requests of the token in a minute', '600'),
      'RateLimit-Remaining': header('Remaining requests', '0'),
      'RateLimit-Reset': header('Seconds until the limit is reset', '21'),
    },
  ),
  503: problems(
    'No fresh answer is available, or the data is older than `Cache-Control` accepts',
    { unavailable: unavailable(1), dataTooOld: TOO_OLD },
    { 'Retry-After': RETRY_AFTER },
  ),
  default: problems('Any other error', { internalError: INTERNAL_ERROR }),
};

export const NOT_READY = problems(
  'Not ready; `checks` names the reasons',
  { notReady: notReady({ catalogue: 'not published yet', cache: 'ok' }) },
  { 'Retry-After': RETRY_AFTER },
);

export const RANGE_RESPONSES = {
  206: {
    description: 'The part that `Range` requests',
    headers: {
      ...references('headers', ['ETag', 'X-Request-Id']),
      ...FILE_HEADERS,
      'Content-Range': header('The part, and the size of the file in bytes', 'bytes 0-1023/2148933'),
    },
  },
  416: problems('`Range` requests bytes beyond the end of the file', {
    unsatisfiable: unsatisfiable(2_148_933),
  }),
};

/** The 400 of an operation that rejects unknown query parameters. @param known its parameters */
export const strict400 = (known: readonly string[]): Schema =>
  problems(`${INVALID}. Or the operation does not have the query parameter`, {
    invalidParameter: invalidExample,
    unknownParameter: unknownParameter('regoin', known),
  });

export function responseReferences(statuses: readonly (keyof typeof RESPONSES)[]): Schema {
  return references('responses', statuses.map(String));
}
