/** Names the folder of a PostgreSQL's programs, e.g. /usr/lib/postgresql/15/bin: tests about statements run on it. */
export const STOCK_POSTGRES = 'TEST_POSTGRES_BIN';
