import { pgTable, primaryKey } from '../connection/drizzle.ts';
import { ofSource } from './sources.ts';

/** Release cycles of engines, see domain/lifecycle.ts. The same for every organization. */
export const lifecycles = pgTable(
  'lifecycles',
  (c) => ({
    sourceId: ofSource(),
    engine: c.text('engine').notNull(),
    name: c.text('name').notNull(),
    releasedOn: c.date('released_on', { mode: 'string' }),
    activeUntil: c.date('active_until', { mode: 'string' }),
    endOfLife: c.date('end_of_life', { mode: 'string' }),
    hasEnded: c.boolean('has_ended').notNull(),
    extendedUntil: c.date('extended_until', { mode: 'string' }),
    latest: c.text('latest'),
  }),
  (t) => [primaryKey({ columns: [t.sourceId, t.engine, t.name] })],
);
