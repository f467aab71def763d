import { describe, expect, it } from 'vitest';
import { openApiDocument } from '../../src/http/openapi.ts';
import { type Operation, operation } from '../../src/http/operation.ts';
import {
  idParameter,
  optional,
  type Parameters,
  parameterReader,
  QueryString,
} from '../../src/http/protocol/parameters.ts';
import { Problem } from '../../src/http/protocol/problem.ts';
import { machineSchema } from '../../src/http/schemas.ts';

const PARAMETERS = {
  id: idParameter('path', 'Machine id', 17),
  region: idParameter('query', 'Region id', 3),
  provider: optional(idParameter('query', 'Provider id', 5)),
  limit: optional(idParameter('query', 'How many', 10), 50),
} satisfies Parameters;

function read(query: string, isStrict: boolean) {
  const found = parameterReader(PARAMETERS, isStrict)({ path: { id: '17' }, query: new QueryString(query) });
  if (!(found instanceof Problem)) return found;
  return JSON.parse(found.body('request-1').toString()) as Readonly<Record<string, unknown>>;
}

describe('optional parameters', () => {
  it.each([true, false])('may be absent, and then are what is documented (strict: %s)', (isStrict) => {
    expect(read('region=3', isStrict)).toEqual({ id: 17, region: 3, provider: undefined, limit: 50 });
    expect(read('region=3&limit=7&provider=5', isStrict)).toEqual({
      id: 17,
      region: 3,
      provider: 5,
      limit: 7,
    });
  });

  it.each(['region=3&limit=', 'region=3&limit=0', 'region=3&limit=x', 'region=3&limit=1&limit=1'])(
    'are refused by name where they do not do: %s',
    (query) => {
      expect(read(query, true)).toEqual({
        type: 'urn:fleetbook:problem:invalid-parameter',
        title: 'Invalid parameter',
        status: 400,
        detail:
          'The query parameter "limit" may be given once, as a positive 32-bit integer in decimal digits.',
        parameter: 'limit',
        instance: 'request-1',
      });
    },
  );

  it('leave the others required', () => {
    expect(read('limit=1', true)).toMatchObject({
      detail:
        'The query parameter "region" must be given once, as a positive 32-bit integer in decimal digits.',
    });
  });
});

describe('unknown query parameters', () => {
  it('are ignored where an operation is not strict', () => {
    expect(read('region=3&x=1&__proto__=2', false)).toMatchObject({ region: 3 });
  });

  it('are refused by a strict one, which says which there are', () => {
    expect(read('region=3&regoin=9', true)).toEqual({
      type: 'urn:fleetbook:problem:unknown-parameter',
      title: 'Unknown parameter',
      status: 400,
      detail:
        'The operation does not have a query parameter of that name. Those that it has: region, provider, limit.',
      parameter: 'regoin',
      instance: 'request-1',
    });
  });

  it.each(['id', '__proto__', 'constructor', 'to_string'])('have no meaning from elsewhere: %s', (name) => {
    expect(read(`region=3&${name}=1`, true)).toMatchObject({ status: 400, parameter: name });
  });

  it.each(['', 'Region', 'r%22', 'a'.repeat(41), 'é', 'a b'])(
    'are not repeated where they are no name: "%s"',
    (name) => {
      const problem = read(`region=3&${encodeURIComponent(name)}=fb_secret`, true);
      expect(problem).toMatchObject({ type: 'urn:fleetbook:problem:unknown-parameter' });
      expect(problem).not.toHaveProperty('parameter');
    },
  );
});

describe('the documentation of a strict operation', () => {
  const made = (isStrict: boolean): Operation =>
    operation({
      path: '/v1/made-up/{id}',
      scope: 'machines:read',
      parameters: PARAMETERS,
      isStrict,
      doc: {
        id: 'getMadeUp',
        summary: 'Made up',
        description: 'Made up.',
        answers: machineSchema,
        example: {},
        extension: true,
      },
      read: () => undefined,
      shared: true,
    });
  const described = (isStrict: boolean) => {
    const { paths } = openApiDocument([made(isStrict)], '1') as {
      paths: Record<
        string,
        { get: { parameters: Record<string, unknown>[]; responses: Record<string, unknown> } }
      >;
    };
    return paths['/v1/made-up/{id}']?.get;
  };

  it('says which parameters are required, and the defaults of the others', () => {
    const parameters = described(true)?.parameters.map(({ name, required, schema }) => [
      name,
      required,
      (schema as { default?: unknown }).default,
    ]);
    expect(parameters).toEqual([
      ['id', true, undefined],
      ['region', true, undefined],
      ['provider', false, undefined],
      ['limit', false, 50],
    ]);
  });

  it('has the problem of an unknown parameter, which others do not', () => {
    expect(JSON.stringify(described(true)?.responses[400])).toContain(
      'Those that it has: region, provider, limit.',
    );
    expect(described(false)?.responses[400]).toEqual({ $ref: '#/components/responses/400' });
  });
});
