/** Answers of searches, as zod schemas. */
import { z } from 'zod';
import { documented, machineWithFactsSchema, object, orNull, text } from '../../http/schemas.ts';
import { RAM_UNITS } from './question.ts';
import type { RecommendDocument, SearchDocument } from './search-reader.ts';

const version = text('Names the catalogue that was searched');
const ramUnit = documented(z.enum(RAM_UNITS), {
  description: 'How the question counted memory: `AsSold` unless the parameter `ram_unit` says otherwise',
});

export const searchSchema = object<SearchDocument>({
  machines: z.array(
    documented(machineWithFactsSchema.exactPartial(), {
      description: 'Every field, or those that `fields` names',
    }),
  ),
  next: orNull(z.string(), 'Cursor of the next page; null: this is the last one'),
  ram_unit: ramUnit,
  version,
  moved: documented(z.boolean(), {
    description: 'The cursor is of another version: the page goes on behind its place in the order',
  }),
});

export const recommendSchema = object<RecommendDocument>({
  recommendations: z.array(
    object<RecommendDocument['recommendations'][number]>({
      machine: machineWithFactsSchema,
      hours: documented(z.number(), { description: 'For which it is paid' }),
      total: documented(z.number(), {
        description: 'What that costs, in the currency that `Fleetbook-Currency` names',
      }),
      computed: text('How the total was computed'),
    }),
  ),
  ram_unit: ramUnit,
  version,
});
