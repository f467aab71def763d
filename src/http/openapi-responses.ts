/** The headers and the responses that `/openapi.json` has by name. Examples are what is really answered. */
import { INVALID_TOKEN, insufficientScope, UNAUTHENTICATED } from './auth.ts';
import { reference, references, type Schema } from './openapi-schemas.ts';
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
    'Strong, of the content and its coding; equal whichever tier answered',
    '"9Xk2mVfQb0c1Zt4yLr7pAw"',
  ),
  'Fleetbook-As-Of': header(
    'When the data was last verified against its source',
    '2026-03-01T04:17:02Z',
    false,
  ),
  'Fleetbook-Currency': {
    ...header('Currency of the prices, ISO 4217; absent before the first prices are there', 'USD', false),
    schema: { type: 'string', pattern: '^[A-Z]{3}$' },
  },
  'Fleetbook-Tier': {
    ...header('Which tier answered', 'memory'),
    schema: { type: 'string', enum: ['memory', 'redis', 'postgres', 'disk'] },
  },
  'X-Request-Id': header("The caller's where it is well formed, else made", REQUEST_ID),
};

/** Of a file that is sent as it comes, besides those. */
export const FILE_HEADERS = {
  'Accept-Ranges': header('Parts can be asked for', 'bytes'),
  'Content-Disposition': header('The name to save it by', 'attachment; filename="machines.parquet"'),
  'Fleetbook-Export-Version': header(
    'Names the state of the catalogue that the file is of',
    'w2Yv0rIq3c8kT5dJm1xZfA',
  ),
};

/** A response that is one of these problems. */
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
  header('What to authenticate with', problem.headers['www-authenticate'] ?? '');
const RETRY_AFTER = header('Seconds', '1');
const LACKING = insufficientScope('clusters:read');

const INVALID = 'A parameter is missing, repeated, or not what it must be; `parameter` names it';
const invalidExample = invalidParameter(
  'query',
  'region',
  idParameter({ description: 'Region id', example: 3, listedBy: '/v1/providers' }),
  'fsn1',
);

export const RESPONSES = {
  304: {
    description: 'What `If-None-Match` names is current',
    headers: references('headers', Object.keys(HEADERS)),
  },
  400: problems(INVALID, { invalidParameter: invalidExample }),
  401: problems(
    'No token, or one that is not valid',
    { noToken: UNAUTHENTICATED, invalidToken: INVALID_TOKEN },
    { 'WWW-Authenticate': challenge(INVALID_TOKEN) },
  ),
  403: problems(
    'The token lacks the scope that `scope` names',
    { insufficientScope: LACKING },
    { 'WWW-Authenticate': challenge(LACKING) },
  ),
  404: problems('Nothing there that the token may read', { notFound: NOT_FOUND }),
  405: problems(
    'Another method than GET and HEAD',
    { methodNotAllowed: METHOD_NOT_ALLOWED },
    { Allow: header('The methods that are answered', METHOD_NOT_ALLOWED.headers.allow ?? '') },
  ),
  406: problems('`Accept` excludes JSON, or `Accept-Encoding` every coding', {
    notAcceptable: NOT_ACCEPTABLE,
  }),
  429: problems(
    'The token has made more requests than it may, where the operator has set a limit',
    { tooManyRequests: tooMany(600, 21) },
    {
      'Retry-After': { ...RETRY_AFTER, example: '21' },
      'RateLimit-Limit': header('Requests that the token may make in a minute', '600'),
      'RateLimit-Remaining': header('How many of them are left', '0'),
      'RateLimit-Reset': header('Seconds until they are counted anew', '21'),
    },
  ),
  503: problems(
    'Nothing fresh is to be had',
    { unavailable: unavailable(1) },
    { 'Retry-After': RETRY_AFTER },
  ),
  default: problems('Any other error', { internalError: INTERNAL_ERROR }),
};

/** Of `/readyz` alone. */
export const NOT_READY = problems(
  'Not ready; `checks` says what is missing',
  { notReady: notReady({ catalogue: 'not published yet', cache: 'ok' }) },
  { 'Retry-After': RETRY_AFTER },
);

/** Of a download: the answers to `Range`. */
export const RANGE_RESPONSES = {
  206: {
    description: 'The part that `Range` asks for',
    headers: {
      ...references('headers', ['ETag', 'X-Request-Id']),
      ...FILE_HEADERS,
      'Content-Range': header('Which part, and of how many bytes', 'bytes 0-1023/2148933'),
    },
  },
  416: problems('`Range` asks for no byte that there is', {
    unsatisfiable: unsatisfiable(2_148_933),
  }),
};

/** Of an operation that refuses unknown query parameters. @param known those that it has */
export const strict400 = (known: readonly string[]): Schema =>
  problems(`${INVALID}. Or the operation has no query parameter of that name`, {
    invalidParameter: invalidExample,
    unknownParameter: unknownParameter('regoin', known),
  });

/** These responses of an operation, by name. */
export function responseReferences(statuses: readonly (keyof typeof RESPONSES)[]): Schema {
  return references('responses', statuses.map(String));
}
