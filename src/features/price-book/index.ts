/** Own prices of organizations: commands and routes that change price books. See docs/price-book.md. */
import type { Feature } from '../../app/feature.ts';
import { addPriceCommands } from './command-line.ts';

export const priceBookFeature: Feature = {
  name: 'price-book',
  commands: addPriceCommands,
  operations: async (context) => (await import('./console.ts')).priceBookPart(context),
};
