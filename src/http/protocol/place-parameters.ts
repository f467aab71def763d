/** Parameters that several features have. */
import { z } from 'zod';
import { CONTINENTS, COUNTRY } from '../../domain/region-country.ts';
import { listParameter, parameter, wordParameter } from './parameters.ts';

const country = parameter(z.string().regex(COUNTRY).toUpperCase(), {
  description: 'Countries of the regions. A region whose country is unknown does not match',
  example: 'DE',
  expected: 'two letters of ISO 3166-1, e.g. DE',
});

/** Filters by where a region is. */
export const placeParameters = {
  country: listParameter(country, 100).optional(),
  continent: listParameter(
    wordParameter('Continents of the regions', CONTINENTS, 'europe'),
    CONTINENTS.length,
  ).optional(),
};

/** The parameter that adds sold-out machines. */
export const availableParameter = wordParameter(
  '`all` includes sold-out machines',
  ['now', 'all'],
  'all',
).default('now');
