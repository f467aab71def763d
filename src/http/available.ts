import { wordParameter } from './protocol/parameters.ts';

/** The parameter that adds sold-out machines. */
export const availableParameter = wordParameter(
  '`all` includes sold-out machines',
  ['now', 'all'],
  'all',
).default('now');
