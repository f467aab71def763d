import { expect, it } from 'vitest';
import { z } from 'zod';
import { label } from '../../../src/sources/schema/fields.ts';
import { environmentKey, optionsInEnvironment, readOptions } from '../../../src/sources/schema/options.ts';

const Options = z.strictObject({
  provider: label.describe('who sells'),
  regionName: label.optional().describe('where'),
});

it.each([
  ['hetzner', 'url', 'HETZNER_URL'],
  ['fleetbook', 'token', 'FLEETBOOK_TOKEN'],
  ['price-list', 'regionName', 'PRICE_LIST_REGION_NAME'],
])('the %s adapter has its %s in %s', (adapter, name, key) => {
  expect(environmentKey(adapter, name)).toBe(key);
});

it('options come from the variables of their adapter, unless these are empty', () => {
  const env = {
    SOME_CLOUD_PROVIDER: 'Acme',
    SOME_CLOUD_REGION_NAME: '',
    SOME_CLOUD_OTHER: 'x',
    PROVIDER: 'y',
  };
  expect(optionsInEnvironment('some-cloud', Options, env)).toEqual({ provider: 'Acme' });
});

it('valid options have their schema’s type', () => {
  expect(readOptions(Options, { provider: 'Acme' }, String)).toEqual({
    options: { provider: 'Acme' },
    problems: [],
  });
});

it('each invalid option is named by its variable, with its problem and its meaning', () => {
  const { problems } = readOptions(Options, { regionName: 7, region: 'a' }, (name) => `options.${name}`);
  expect(problems).toEqual([
    'options.provider is missing; it must be text (who sells)',
    'options.regionName must be text (where)',
    'options.: Unrecognized key: "region"; known are provider, regionName',
  ]);
});
