import { wordParameter } from './protocol/parameters.ts';

/** The parameter that also shows machines that are sold out. */
export const availableParameter = wordParameter(
  '`all` also shows machines that are sold out',
  ['now', 'all'],
  'all',
).default('now');
