import Fastify from 'fastify';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { openApiDocument } from '../../src/http/openapi.ts';
import { type Operation, operation, valuesOf } from '../../src/http/operation.ts';
import {
  aboutOf,
  decimalParameter,
  InvalidRequest,
  idParameter,
  listParameter,
  type Parameters,
  requestSchemas,
  validatorOf,
  wordParameter,
} from '../../src/http/protocol/parameters.ts';
import { machineSchema } from '../../src/http/schemas.ts';

const PATH = '/v1/made-up/{id}';
const PARAMETERS = {
  id: idParameter({ description: 'Machine id', example: 17 }),
  region: idParameter({ description: 'Region id', example: 3 }),
  provider: idParameter({ description: 'Provider id', example: 5 }).optional(),
  limit: idParameter({ description: 'How many', example: 10 }).default(50),
} satisfies Parameters;

/** Fastify's result for a query string: the values, or the problem. */
async function validated(query: string, parameters: Parameters, isStrict: boolean) {
  const app = Fastify({ genReqId: () => 'request-1' });
  app.setValidatorCompiler(validatorOf);
  app.setErrorHandler((error, request, reply) => {
    if (!(error instanceof InvalidRequest)) throw error;
    return reply.code(error.problem.status).send(error.problem.body(request.id));
  });
  const at = 'id' in parameters ? PATH : '/v1/made-up';
  const schema = requestSchemas(at, parameters, isStrict);
  app.get(at.replace('{id}', ':id'), { schema }, async (request) => valuesOf(request));
  const response = await app.inject(`${at.replace('{id}', '17')}?${query}`);
  return response.json<Readonly<Record<string, unknown>>>();
}

const read = (query: string, isStrict: boolean) => validated(query, PARAMETERS, isStrict);
const REFUSED = { type: 'urn:fleetbook:problem:invalid-parameter', status: 400 };

describe('optional parameters', () => {
  it.each([true, false])(
    'may be absent, and then have their documented default (strict: %s)',
    async (isStrict) => {
      expect(await read('region=3', isStrict)).toEqual({ id: 17, region: 3, provider: undefined, limit: 50 });
      expect(await read('region=3&limit=7&provider=5', isStrict)).toEqual({
        id: 17,
        region: 3,
        provider: 5,
        limit: 7,
      });
    },
  );

  it.each(['region=3&limit=', 'region=3&limit=0', 'region=3&limit=x', 'region=3&limit=1&limit=1'])(
    'are rejected by name if invalid: %s',
    async (query) => {
      expect(await read(query, true)).toEqual({
        type: 'urn:fleetbook:problem:invalid-parameter',
        title: 'Invalid parameter',
        status: 400,
        detail: expect.stringMatching(
          /^The query parameter "limit" may be given once, as a positive 32-bit integer in decimal digits(, not "[0x]?"|; it was given 2 times)\.$/,
        ),
        parameter: 'limit',
        instance: 'request-1',
      });
    },
  );

  it('leave the others required', async () => {
    expect(await read('limit=1', true)).toMatchObject({
      detail:
        'The query parameter "region" must be given once, as a positive 32-bit integer in decimal digits.',
    });
  });
});

describe('a rejected value', () => {
  const detailOf = async (query: string) => (await read(query, true)).detail;

  it.each([
    ['region=fsn1', ', not "fsn1".'],
    ['region=a%22b%0Ac%E2%80%AE', ', not "a\u{FFFD}b\u{FFFD}c\u{FFFD}".'],
    [`region=${'1'.repeat(50)}`, `, not "${'1'.repeat(40)}…".`],
    ['region=1&region=2', '; it was given 2 times.'],
  ])('is repeated if it is short and harmless: %s', async (query, end) => {
    expect(await detailOf(query)).toContain(end);
  });

  it.each(['region=fb_secret', 'region=Bearer%20x', 'fb_secret=1&region=3'])(
    'is not repeated if it may be a token: %s',
    async (query) => {
      expect(await detailOf(query)).not.toMatch(/fb_|Bearer/);
      expect(await detailOf(query)).toContain('the text that was sent');
    },
  );
});

describe('a list', () => {
  const FIELDS = {
    fields: listParameter(wordParameter('Fields', ['id', 'name', 'cpu'], 'id'), 3).optional(),
  };
  const fields = (query: string) => validated(query, FIELDS, true);

  it.each(['fields=id,name', 'fields=id&fields=name'])('is read from %s', async (query) => {
    expect(await fields(query)).toEqual({ fields: ['id', 'name'] });
  });

  it.each(['fields=id&fields=x', 'fields=id&fields=', 'fields=id,name&fields=cpu&fields=id'])(
    'is rejected: %s',
    async (query) => {
      expect(await fields(query)).toMatchObject({ ...REFUSED, parameter: 'fields' });
    },
  );
});

describe('a decimal', () => {
  const PRICE = { price: decimalParameter('Price', 9, '0.1') };
  const price = (text: string) => validated(`price=${text}`, PRICE, false);

  it('is a number in the schema, and is read as programs write numbers', async () => {
    expect(z.toJSONSchema(PRICE.price, { unrepresentable: 'any' })).toMatchObject({ type: 'number' });
    expect(z.toJSONSchema(PRICE.price, { unrepresentable: 'any' })).not.toHaveProperty('multipleOf');
    expect(aboutOf(PRICE.price)).toMatchObject({ example: 0.1 });
    expect(await price('1e-7')).toEqual({ price: '0.000000100' });
    expect(await price('0.25')).toEqual({ price: '0.25' });
  });

  it('has its bounds in the schema', async () => {
    const RAM = { ram: decimalParameter('Memory', 3, '4') };
    const ram = (text: string) => validated(`ram=${text}`, RAM, false);
    const bounds = { minimum: 0.001, exclusiveMaximum: 1_000_000_000, multipleOf: 0.001 };
    expect(z.toJSONSchema(RAM.ram, { unrepresentable: 'any' })).toMatchObject(bounds);
    for (const text of ['0.001', '999999999.999']) expect(await ram(text)).toEqual({ ram: text });
    for (const text of ['0.0009', '1000000000', '1.0005'])
      expect(await ram(text), text).toMatchObject({ ...REFUSED, parameter: 'ram' });
  });

  it.each(['1e-20', '1e3', '-1', '0'])('is rejected: %s', async (text) => {
    expect(await price(text)).toMatchObject({ ...REFUSED, parameter: 'price' });
  });
});

describe('unknown query parameters', () => {
  it('are ignored by an operation that is not strict', async () => {
    expect(await read('region=3&x=1&__proto__=2', false)).toMatchObject({ region: 3 });
  });

  it('are rejected by a strict one, which names the known parameters', async () => {
    expect(await read('region=3&regoin=9', true)).toEqual({
      type: 'urn:fleetbook:problem:unknown-parameter',
      title: 'Unknown parameter',
      status: 400,
      detail: 'The operation has no query parameter "regoin". It has: region, provider, limit.',
      parameter: 'regoin',
      instance: 'request-1',
    });
  });

  it.each(['id', '__proto__', 'constructor', 'to_string'])(
    'have no meaning from elsewhere: %s',
    async (name) => {
      expect(await read(`region=3&${name}=1`, true)).toMatchObject({ status: 400, parameter: name });
    },
  );

  it.each(['', 'Region', 'r%22', 'a'.repeat(41), 'é', 'a b'])(
    'are not repeated as a member if they are not a name: "%s"',
    async (name) => {
      const problem = await read(`region=3&${encodeURIComponent(name)}=fb_secret`, true);
      expect(problem).toMatchObject({ type: 'urn:fleetbook:problem:unknown-parameter' });
      expect(problem).not.toHaveProperty('parameter');
    },
  );
});

describe('the documentation of a strict operation', () => {
  const made = (isStrict: boolean): Operation =>
    operation({
      path: PATH,
      scope: 'machines:read',
      parameters: PARAMETERS,
      isStrict,
      doc: {
        id: 'getMadeUp',
        summary: 'Made up',
        description: 'Made up.',
        answers: () => machineSchema,
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
    return paths[PATH]?.get;
  };

  it('states the required parameters, and the defaults of the others', () => {
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
      ['Cache-Control', false, undefined],
    ]);
  });

  it('has the problem of an unknown parameter, which others lack', () => {
    expect(JSON.stringify(described(true)?.responses[400])).toContain('It has: region, provider, limit.');
    expect(described(false)?.responses[400]).toEqual({ $ref: '#/components/responses/400' });
  });
});
