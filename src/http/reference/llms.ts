/** Writes `/llms.txt` (llmstxt.org), the API as text for language models, from the operations. Pure. */
import { INVALID_TOKEN, insufficientScope, UNAUTHENTICATED } from '../auth.ts';
import type { DescribedOperation } from '../operation.ts';
import { aboutOf, queryNames } from '../protocol/parameters.ts';
import {
  METHOD_NOT_ALLOWED,
  NOT_ACCEPTABLE,
  NOT_FOUND,
  type Problem,
  unavailable,
} from '../protocol/problem.ts';
import { tooMany } from '../protocol/rate-limit.ts';

const HEAD = `# Fleetbook

> The catalogue of cloud machines with their prices per minute, and the database clusters of the token's organization, as
> JSON over HTTP. Read only: GET and HEAD.

- Every request to \`/v1\` needs \`Authorization: Bearer fb_…\`. A token has scopes: \`machines:read\`, \`clusters:read\`.
- Prices are per minute, in the currency of the header \`Fleetbook-Currency\`. A price times 60 is a price per hour.
- Memory (\`ram\`) is in GiB if \`ram_unit\` is \`Binary\`, in GB if it is \`Decimal\`. Searches and recommendations
  compare the number alone: 8 GB and 8 GiB both match 8, unless the parameter \`ram_unit\` selects one unit.
- \`Fleetbook-As-Of\` is the time when the data was last verified against its source. \`Fleetbook-Tier\` names the tier
  that answered.
- \`Cache-Control: max-age=N\` refuses data that is older than N seconds: 503 states its age.
- With \`ETag\` and \`If-None-Match\`, an unchanged answer has no body (304).
- Every error is a problem of RFC 9457 (\`application/problem+json\`): \`detail\` names the cause and the accepted values.`;

const ERRORS: readonly (readonly [string, Problem])[] = [
  ['no token', UNAUTHENTICATED],
  ['invalid token', INVALID_TOKEN],
  ['token without the scope', insufficientScope('clusters:read')],
  ['not found', NOT_FOUND],
  ['other method', METHOD_NOT_ALLOWED],
  ['`Accept` excludes JSON', NOT_ACCEPTABLE],
  ['too many requests, if there is a limit', tooMany(600, 21)],
  ['no fresh answer', unavailable(1)],
];

export function llmsText(operations: readonly DescribedOperation[], basePath = ''): string {
  const errors = ERRORS.map(([when, problem]) => {
    const { detail } = JSON.parse(problem.body('').toString()) as { detail: string };
    return `- ${problem.status}, ${when}: ${detail}`;
  });
  return [
    HEAD,
    ['## Operations', ...operations.map((operation) => describe(operation, basePath))].join('\n\n'),
    ['## Errors', '', '- 400, invalid parameter: `parameter` names it.', ...errors].join('\n'),
    `## More

- [OpenAPI 3.1](${basePath}/openapi.json): the same with the schema of every answer
- [Reference page](${basePath}/docs): for people, with a form to send requests
- [Readiness](${basePath}/readyz): whether it can answer; needs no token`,
    '',
  ].join('\n\n');
}

function describe({ path, scope, parameters, isStrict, doc }: DescribedOperation, basePath: string): string {
  const inQuery = queryNames(path, parameters);
  const listed = Object.entries(parameters).map(([name, parameter]) => {
    const { description, expected, example } = aboutOf(parameter);
    const where = inQuery.includes(name) ? 'query' : 'path';
    const must = parameter.isOptional() ? 'optional' : 'required';
    return `- \`${name}\` (${where}, ${must}): ${description}. It must be ${expected}, e.g. \`${String(example)}\`.`;
  });
  return [
    `### GET ${basePath}${path}`,
    `${doc.summary}. ${doc.description}${scope ? ` Scope: \`${scope}\`.` : ''}${isStrict ? ' Other query parameters are rejected.' : ''}`,
    ...(listed.length > 0 ? [listed.join('\n')] : []),
    doc.types
      ? `Answers a file: ${doc.types.join(', ')}.`
      : `Answers, for example:\n\n\`\`\`json\n${JSON.stringify(doc.example)}\n\`\`\``,
  ].join('\n\n');
}
