/** Names the folder of PostgreSQL's programs, e.g. /usr/lib/postgresql/15/bin, for tests about statements. */
export const STOCK_POSTGRES = 'TEST_POSTGRES_BIN';

/**
 * Which PostgreSQL the tests use. `stock`: that of the system's packages. `embedded`: the one of the npm package. Otherwise
 * the embedded one, and in CI that of the packages for the tests about statements.
 */
export const TEST_POSTGRES = 'TEST_POSTGRES';
