/** Today's OpenAPI document breaks no client of a kept release. */
import { describe, expect, it } from 'vitest';
import { openApiText } from '../../site/build/openapi.ts';
import { VERSION } from '../../src/config/package.ts';
import { readFixture } from './support/fixture.ts';
import { breakingChanges } from './support/openapi.ts';

/** Documents before 0.1.0 were no promise. */
const RELEASES = ['0.1.0'];

const body = await openApiText(VERSION);
// biome-ignore lint/suspicious/noExplicitAny: the tests change any part of the document.
type Mutable = any;
const today = (): Mutable => JSON.parse(body);

it.each(RELEASES)('no change since %s is breaking', async (release) => {
  const { openApi } = await readFixture(release);
  expect(breakingChanges(openApi, today())).toEqual([]);
});

/** Fewer paths and schemas than the whole document, which takes longer to compare. */
const TOUCHED = ['/v1/clusters', '/v1/machines/{id}', '/v1/machines/search', '/healthz'];
const some = (): Mutable => {
  const document = today();
  document.paths = Object.fromEntries(TOUCHED.map((path) => [path, document.paths[path]]));
  const used = new Set<string>();
  const visit = (part: unknown) => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      if (used.has(name)) continue;
      used.add(name);
      visit(document.components.schemas[name]);
    }
  };
  visit({ paths: document.paths, ...document.components, schemas: undefined });
  const schemas = Object.entries(document.components.schemas).filter(([name]) => used.has(name));
  document.components.schemas = Object.fromEntries(schemas);
  return document;
};

const searchParameter = (document: Mutable, of: (parameter: Mutable) => unknown) =>
  document.paths['/v1/machines/search'].get.parameters.find(of);
const added = (required: boolean) => ({ name: 'extra', in: 'query', required, schema: { type: 'string' } });

describe('breaking is', () => {
  it.each<[string, (document: Mutable) => void]>([
    ['a removed path', ({ paths }) => delete paths['/v1/clusters']],
    ['a removed property', ({ components }) => delete components.schemas.Machine.properties.price],
    ['a property that may be missing', ({ components }) => components.schemas.Machine.required.pop()],
    [
      'another type of a property',
      ({ components }) => (components.schemas.Machine.properties.ram.type = 'string'),
    ],
    ['null', ({ components }) => (components.schemas.Machine.properties.name.type = ['string', 'null'])],
    ['a new required parameter', ({ paths }) => paths['/v1/clusters'].get.parameters.push(added(true))],
    ['a removed parameter', ({ paths }) => paths['/v1/machines/search'].get.parameters.shift()],
    ['a renamed parameter', (document) => (searchParameter(document, () => true).name = 'other')],
    [
      'a parameter that is required now',
      (document) => (searchParameter(document, () => true).required = true),
    ],
    [
      'a narrowed enum',
      (document) => searchParameter(document, ({ schema }) => schema.enum).schema.enum.pop(),
    ],
    [
      'a lower maximum',
      (document) => (searchParameter(document, ({ schema }) => schema.maximum).schema.maximum = 9),
    ],
    [
      'a new value in answers',
      ({ components }) => components.schemas.Machine.properties.ram_unit.enum.push('Bits'),
    ],
    ['a removed status', ({ paths }) => delete paths['/v1/machines/{id}'].get.responses[404]],
    ['a removed header', ({ paths }) => delete paths['/v1/clusters'].get.responses[200].headers.ETag],
    ['a token for an open path', ({ paths }) => (paths['/healthz'].get.security = [{ token: [] }])],
    ['another operation id', ({ paths }) => (paths['/v1/clusters'].get.operationId = 'clusters')],
  ])('%s', (_, change) => {
    const document = some();
    change(document);
    expect(breakingChanges(some(), document)).not.toEqual([]);
  });
});

describe('not breaking is', () => {
  it.each<[string, (document: Mutable) => void]>([
    ['no change', () => {}],
    [
      'a new path',
      ({ paths }) => (paths['/v1/new'] = { get: { ...paths['/v1/clusters'].get, operationId: 'new' } }),
    ],
    [
      'a new property',
      ({ components }) => (components.schemas.Machine.properties.extra = { type: 'string' }),
    ],
    ['a new optional parameter', ({ paths }) => paths['/v1/clusters'].get.parameters.push(added(false))],
    [
      'a further accepted value',
      (document) => searchParameter(document, ({ schema }) => schema.enum).schema.enum.push('x'),
    ],
    ['another order of parameters', ({ paths }) => paths['/v1/machines/search'].get.parameters.reverse()],
    ['another description', ({ components }) => (components.schemas.Machine.description = 'A machine')],
    ['a new component', ({ components }) => (components.schemas.Extra = { type: 'object' })],
  ])('%s', (_, change) => {
    const document = some();
    change(document);
    expect(breakingChanges(some(), document)).toEqual([]);
  });
});
