/** The tables. drizzle-kit emits neither FORCE nor grants, so the second half of the baseline migration has roles and row-level security. */
export * from './schema/catalogue.ts';
export * from './schema/clusters.ts';
export * from './schema/lifecycles.ts';
export * from './schema/notifications.ts';
export * from './schema/operators.ts';
export * from './schema/organizations.ts';
export * from './schema/price-book.ts';
export * from './schema/publication.ts';
export * from './schema/sources.ts';
