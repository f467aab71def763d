import { z } from 'zod';
import { type Cycle, type LifecycleEngine, PRODUCTS, versionParts } from '../../domain/lifecycle.ts';
import { readInstant } from '../../domain/text/time-span.ts';
import { label, mustBe } from '../schema/fields.ts';
import { rejectedRow } from '../schema/items.ts';
import { labelIn, readRow } from '../schema/rows.ts';
import { badAnswer, type CycleItem, type SourceContext } from '../source.ts';

/** Releases of one product. Those with the most have about fifty. */
const MOST_RELEASES = 1000;

const A_DATE = 'a date such as 2027-01-31';
const date = z
  .string({ error: (issue) => mustBe(A_DATE, issue.input) })
  .refine((text) => /^.{10}$/.test(text) && readInstant(text) !== undefined, { error: `must be ${A_DATE}` });

/** Of the documented schema 1.x. */
const Product = z.object({
  schema_version: z.string().regex(/^1\./, { error: 'must be 1.x; this release reads no other version' }),
  result: z.object({
    name: label,
    releases: z
      .array(z.unknown())
      .min(1, { error: 'lists nothing; an empty answer is never taken for "all gone"' })
      .max(MOST_RELEASES, { error: `has more than ${MOST_RELEASES} rows` }),
  }),
});

/** A product has only the phases that its publisher knows: the fields of another phase are absent. */
const Release = z.object({
  name: label.refine((text) => versionParts(text) !== undefined, {
    error: 'must be a version such as 16 or 8.4',
  }),
  releaseDate: date.nullish(),
  isEol: z.boolean({ error: (issue) => mustBe('true or false', issue.input) }),
  eolFrom: date.nullable(),
  eoasFrom: date.nullish(),
  eoesFrom: date.nullish(),
  latest: z.object({ name: label }).nullish().catch(undefined),
});

/** endoflife.date: release cycles of products, with the ends of their support. */
export const adapter = {
  id: 'endoflife',
  baseUrl: 'https://endoflife.date/api/v1',
  endpoints: ['/products/{product}/'],
  credentials: 'none',
  schedule: '50 4 * * *',

  /**
   * Yields the cycles of every product.
   * @throws SourceError if one product cannot be read: its cycles must not count as missing
   */
  async *cycles({ http }: Pick<SourceContext, 'http'>): AsyncGenerator<CycleItem, void> {
    for (const [engine, product] of Object.entries(PRODUCTS) as [LifecycleEngine, string][]) {
      const path = `/products/${product}/`;
      const { data } = await http.json(path, Product);
      const { name, releases } = data.result;
      // An old name of a product is redirected to the new one, which may be another product.
      if (name !== product) throw badAnswer(`${path}: result.name must be ${product}; it is ${name}`);
      for (const [index, row] of releases.entries()) {
        const key = `${engine} ${labelIn(row, 'name') ?? `release ${index + 1}`}`;
        const { value, reason } = readRow(Release, row);
        yield value === undefined
          ? rejectedRow(key, reason)
          : { kind: 'cycle', cycle: cycleOf(engine, value) };
      }
    }
  },
} as const;

function cycleOf(engine: LifecycleEngine, release: z.infer<typeof Release>): Cycle {
  return {
    engine,
    name: release.name,
    releasedOn: release.releaseDate ?? null,
    activeUntil: release.eoasFrom ?? null,
    endOfLife: release.eolFrom,
    hasEnded: release.isEol,
    extendedUntil: release.eoesFrom ?? null,
    latest: release.latest?.name ?? null,
  };
}
