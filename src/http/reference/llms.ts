/** `/llms.txt` (llmstxt.org): the API as a text that a language model reads, written out of the operations. Pure. */
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

- Every request to \`/v1\` carries \`Authorization: Bearer fb_…\`. A token has scopes: \`machines:read\`, \`clusters:read\`.
- Prices are per minute, in the currency that the header \`Fleetbook-Currency\` names. Times 60 is a price per hour.
- Memory (\`ram\`) is counted in GiB where \`ram_unit\` is \`Binary\`, in GB where it is \`Decimal\`. Searches and
  recommendations count each machine as sold, so that 8 GB and 8 GiB both satisfy 8, unless their \`ram_unit\` says otherwise.
- \`Fleetbook-As-Of\` says when the data was last verified against its source, \`Fleetbook-Tier\` what answered.
- \`ETag\` and \`If-None-Match\` save the body of an answer that has not changed (304).
- Every error is a problem of RFC 9457 (\`application/problem+json\`): \`detail\` says what is wrong and what would do.`;

const ERRORS: readonly (readonly [string, Problem])[] = [
  ['no token', UNAUTHENTICATED],
  ['a token that is not valid', INVALID_TOKEN],
  ['a token without the scope', insufficientScope('clusters:read')],
  ['nothing there', NOT_FOUND],
  ['another method', METHOD_NOT_ALLOWED],
  ['`Accept` excludes JSON', NOT_ACCEPTABLE],
  ['too many requests, where there is a limit', tooMany(600, 21)],
  ['nothing fresh is to be had', unavailable(1)],
];

/** @param basePath what comes before every path; empty for none */
export function llmsText(operations: readonly DescribedOperation[], basePath = ''): string {
  const errors = ERRORS.map(([when, problem]) => {
    const { detail } = JSON.parse(problem.body('').toString()) as { detail: string };
    return `- ${problem.status}, ${when}: ${detail}`;
  });
  return [
    HEAD,
    ['## Operations', ...operations.map((operation) => describe(operation, basePath))].join('\n\n'),
    ['## Errors', '', '- 400, a parameter that does not do: `parameter` names it.', ...errors].join('\n'),
    `## More

- [OpenAPI 3.1](${basePath}/openapi.json): the same with the schema of every answer
- [Reference page](${basePath}/docs): for people, with requests to try out
- [Readiness](${basePath}/readyz): whether it can answer; no token is asked for`,
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
    `${doc.summary}. ${doc.description}${scope ? ` Scope: \`${scope}\`.` : ''}${isStrict ? ' Other query parameters are refused.' : ''}`,
    ...(listed.length > 0 ? [listed.join('\n')] : []),
    doc.types
      ? `Answers a file: ${doc.types.join(', ')}.`
      : `Answers, for example:\n\n\`\`\`json\n${JSON.stringify(doc.example)}\n\`\`\``,
  ].join('\n\n');
}
