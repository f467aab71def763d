import { z } from 'zod';
import { LIFECYCLE_REASONS, LIFECYCLE_STATES } from '../../domain/lifecycle.ts';
import { named } from '../../http/openapi-schemas.ts';
import { clusterSchema, count, documented, orNull, text } from '../../http/schemas.ts';

const { provider, region } = clusterSchema.shape;

const date = (description: string) => documented(z.string().nullable(), { format: 'date', description });

const cycle = named(
  'ReleaseCycle',
  z.strictObject({
    name: text('The releases that are supported together, e.g. `16` of PostgreSQL or `8.4` of MySQL'),
    released_on: date('First release; null: unknown'),
    active_until: date(
      'End of the phase with more than security fixes; null: there is none, or no end is announced',
    ),
    end_of_life: date('End of the community’s support, its last day; null: none is announced'),
    extended_until: date('End of the publisher’s paid support after that; null: there is none'),
    latest: orNull(z.string(), 'The newest release of the cycle; null: unknown'),
    link: text('The page of endoflife.date about the engine'),
  }),
);

export const clusterDetailsSchema = named(
  'ClusterDetails',
  z.strictObject({
    cluster: z.strictObject({
      slug: text('Slug'),
      name: text('Cluster name'),
      status: text('Status'),
      provider,
      region,
    }),
    engine: orNull(
      z.string(),
      'The database, e.g. `postgresql`; an engine that Fleetbook does not know has the provider’s own word. Null: the source does not state it',
    ),
    version: orNull(z.string(), 'As the source states it, e.g. `16.4`; null: it does not'),
    state: documented(z.enum(LIFECYCLE_STATES), {
      description:
        '`ended`: the last supported day has passed; `supported`: it has not; `unknown`: see `reason`',
    }),
    end_of_life: date('The last day on which the version is supported; null: see `reason`'),
    days_left: orNull(count('Days'), 'Days from today in UTC to `end_of_life`, negative after it'),
    stated_by: orNull(
      z.string(),
      'Source of `end_of_life`: the name of the provider, which has priority, or `endoflife.date`',
    ),
    cycle: orNull(cycle, 'The release cycle of the version; null if none is known'),
    reason: orNull(
      z.enum(LIFECYCLE_REASONS),
      'Why `end_of_life` is null. `no_engine`, `no_version`: the source of the cluster does not state it; `engine_not_covered`: endoflife.date is not read for the engine; `no_lifecycles`: no source of lifecycles was read; `version_too_short`: the version may be of several cycles, as MySQL `8` of 8.0 to 8.4; `no_cycle`: no cycle has the version; `not_announced`: the cycle is supported without an announced end. Null for an ended cycle whose day is unknown',
    ),
  }),
);
export type ClusterDetailsDocument = z.output<typeof clusterDetailsSchema>;

export const lifecycleSchema = named(
  'LifecyclePage',
  z.strictObject({
    within: count('The days of the question'),
    today: documented(z.string(), { format: 'date', description: 'The day in UTC that counts as today' }),
    lifecycles_read_at: documented(z.string().nullable(), {
      format: 'date-time',
      description: 'When the release cycles were last read; null: never',
    }),
    totals: documented(
      z.strictObject({
        clusters: count('All clusters that meet the filter'),
        ended: count('Of them, those whose version has ended'),
        ending: count('Those whose version ends within the days'),
        unknown: count('Those with an unknown end'),
      }),
      { description: 'Of all pages' },
    ),
    clusters: documented(z.array(clusterDetailsSchema), {
      description: 'Ended and ending ones, the earliest first, then unknown ones; equal ones by slug',
    }),
    next: orNull(z.string(), 'Cursor of the next page; null on the last page'),
  }),
);
export type LifecycleDocument = z.output<typeof lifecycleSchema>;
