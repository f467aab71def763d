/** Names the folder of PostgreSQL's programs, e.g. /usr/lib/postgresql/15/bin, for tests about statements. */
export const STOCK_POSTGRES = 'TEST_POSTGRES_BIN';
