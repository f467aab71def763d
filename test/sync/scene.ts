import postgres from 'postgres';
import { type Connection, openStore, type Sql, type Store } from '../../src/db/connection/connect.ts';
import { createOrganization } from '../../src/db/organizations.ts';
import { withTimeout } from '../../src/domain/clock.ts';
import type { ReportedCluster } from '../../src/domain/cluster.ts';
import type { ExclusionReason, Offer } from '../../src/domain/machine.ts';
import type { MachineFacts } from '../../src/domain/machine-facts.ts';
import type { Decider } from '../../src/domain/operator.ts';
import type { ExchangeRates } from '../../src/domain/prices/price.ts';
import type { OfferedRegionPrice } from '../../src/domain/prices/region-price.ts';
import type { OfferedTerms } from '../../src/domain/prices/term.ts';
import type { CatalogueItem, ClusterItem } from '../../src/sources/source.ts';
import { syncCatalogue } from '../../src/sync/catalogue/catalogue.ts';
import { syncClusters } from '../../src/sync/clusters/clusters.ts';
import { DEFAULT_GUARD_LIMITS, type GuardLimits } from '../../src/sync/guards.ts';
import type { SyncResult } from '../../src/sync/pipeline.ts';
import { LiveRuns } from '../../src/sync/runs/live.ts';
import { finishRun, type Run, registerSource } from '../../src/sync/runs/run.ts';
import { createDatabase, emptyDatabase, type TestDatabase } from '../support/postgres.ts';

export const ACME = { id: 77, name: 'Acme' } as const;

export const OPERATOR: Decider = { by: 'ada@desk', how: 'cli', address: 'ada@desk', reason: 'it is right' };

export interface RunSettings {
  /** The source; by default `acme` for catalogues and `plane` for clusters. */
  readonly source?: string;
  readonly provider?: { readonly id: number; readonly name: string };
  readonly currency?: string;
  readonly rates?: ExchangeRates;
  readonly limits?: Partial<GuardLimits>;
  readonly approved?: boolean;
  readonly missingIsDeleted?: boolean;
  /** Validators of the last read. */
  readonly parseFingerprint?: string;
  /** A run that has already begun. */
  readonly run?: Run;
  /** The slot of the run, RFC 3339. */
  readonly slot?: string;
  /** Replaces the scene's clock. */
  readonly now?: () => Date;
}

/** Limits that hold only a batch without a usable row, and limits that hold every possible change. */
export const LAX = everyLimit(1e9);
export const STRICT = {
  ...everyLimit(0),
  priceRatio: 1,
  maxHourlyPrice: DEFAULT_GUARD_LIMITS.maxHourlyPrice,
};

function everyLimit(limit: number): GuardLimits {
  const limits = { ...DEFAULT_GUARD_LIMITS };
  for (const name of Object.keys(limits)) Object.assign(limits, { [name]: limit });
  return limits;
}

type Items<T> = Iterable<T> | AsyncIterable<T>;

/** A database with its own clock: each sync happens an hour after the one before. */
export interface Scene extends AsyncDisposable {
  readonly db: TestDatabase;
  /** Connection in the worker's role. */
  readonly store: Store;
  readonly liveRuns: LiveRuns;
  /** Connection in the owner's role, which row-level security does not restrict: for reading rows. */
  readonly sql: Sql;
  begin(source?: string, kind?: 'catalogue' | 'clusters', slot?: string): Promise<Run>;
  catalogue(items: Items<CatalogueItem>, settings?: RunSettings): Promise<SyncResult>;
  clusters(items: Items<ClusterItem<ReportedCluster>>, settings?: RunSettings): Promise<SyncResult>;
  organization(slug: string): Promise<number>;
  /** Restores the state after the migrations. */
  reset(): Promise<void>;
  /** Each row of these tables with its place and its transaction. Equal results mean that nothing was written. */
  rows(...tables: string[]): Promise<Record<string, unknown>>;
  /** Each row of every table. */
  everything(): Promise<Record<string, unknown>>;
  /** The last used ids, except those of runs. */
  sequences(): Promise<unknown>;
  now(): Date;
}

export interface SceneOptions {
  /** True for tests that end connections: each run opens its own, as in the product. */
  readonly endsConnections?: boolean;
}

/** @param given an existing database, which the scene does not dispose; by default it creates one */
export async function openScene(
  given?: TestDatabase,
  { endsConnections = false }: SceneOptions = {},
): Promise<Scene> {
  await using undo = new AsyncDisposableStack();
  const db = given ?? undo.use(await createDatabase());
  const plain = undo.use(openStore({ url: db.url, role: 'worker' }));
  const liveRuns = undo.use(new LiveRuns(plain.connection));
  const store = endsConnections
    ? plain
    : { ...plain, connection: undo.use(new Connections(plain.connection)).next };
  const sql: Sql = postgres(db.url, { max: 1, onnotice: () => {} });
  undo.defer(() => sql.end({ timeout: 5 }));
  let hour = 0;
  const now = () => new Date(Date.UTC(2026, 0, 1, hour));

  const scene: Omit<Scene, typeof Symbol.asyncDispose> = {
    db,
    store,
    liveRuns,
    sql,
    now,
    async begin(source = 'acme', kind = 'catalogue', slot) {
      await registerSource(store.db, { id: source, kind, adapter: 'test' });
      return (await liveRuns.begin(source, slot)).run;
    },
    async catalogue(items, settings = {}) {
      const run = settings.run ?? (await scene.begin(settings.source, 'catalogue', settings.slot));
      hour += 1;
      const { provider = ACME } = settings;
      return syncCatalogue({ ...common(run, settings), provider, items: stream(items) }).catch(failed(run));
    },
    async clusters(items, settings = {}) {
      const run = settings.run ?? (await scene.begin(settings.source ?? 'plane', 'clusters', settings.slot));
      hour += 1;
      return syncClusters({ ...common(run, settings), items: stream(items) }).catch(failed(run));
    },
    async organization(slug) {
      const made = await createOrganization(store.db, slug, slug.toUpperCase());
      if (made === undefined) throw new Error(`${slug} is there already`);
      return made.id;
    },
    async reset() {
      await emptyDatabase(sql);
      hour = 0;
    },
    async rows(...tables) {
      const found: Record<string, unknown> = {};
      for (const table of tables) {
        found[table] =
          await sql`select ctid::text, xmin::text, t::text as row from ${sql(table)} t order by ctid`;
      }
      return found;
    },
    async everything() {
      return scene.rows(...(await tableNames(sql)));
    },
    sequences: () =>
      sql`select sequencename, last_value from pg_sequences where sequencename <> 'sync_runs_id_seq' order by 1`,
  };
  const common = (run: Run, settings: RunSettings) => ({
    store,
    run,
    pricing: { currency: settings.currency ?? 'USD', rates: settings.rates ?? {} },
    limits: { ...DEFAULT_GUARD_LIMITS, ...settings.limits },
    now: settings.now ?? now,
    ...(settings.approved === undefined ? {} : { approved: settings.approved }),
    ...(settings.parseFingerprint === undefined ? {} : { parseFingerprint: settings.parseFingerprint }),
    ...(settings.missingIsDeleted === undefined ? {} : { missingIsDeleted: settings.missingIsDeleted }),
  });
  const failed = (run: Run) => async (error: unknown) => {
    await finishRun(store.db, run, 'failed', undefined, now().toISOString(), 'failed');
    throw error;
  };
  const opened = undo.move();
  return { ...scene, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** Milliseconds until a connection counts as busy, e.g. with a statement that waits for a lock. */
const BUSY_MS = 500;

/** The connections of ended runs serve later ones: a new connection costs as much as a run of a few rows. */
class Connections implements AsyncDisposable {
  readonly #open: () => Connection;
  readonly #idle: Connection[] = [];

  constructor(open: () => Connection) {
    this.#open = open;
  }

  readonly next = (): Connection => {
    const connection = this.#idle.pop() ?? this.#open();
    const { db, sql } = connection;
    return { db, sql, [Symbol.asyncDispose]: () => this.#leave(connection) };
  };

  /** Leaves what a new connection has: no transaction, no temporary table, no setting and no lock. */
  async #leave(connection: Connection): Promise<void> {
    const clean = 'rollback; discard temp; reset all; select pg_advisory_unlock_all()';
    const cleaned = await withTimeout(BUSY_MS, connection.sql.unsafe(clean)).catch(() => false);
    if (cleaned) this.#idle.push(connection);
    else await connection[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#idle) await connection[Symbol.asyncDispose]();
  }
}

async function tableNames(sql: Sql): Promise<string[]> {
  const tables = await sql<{ name: string }[]>`
    select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' order by 1`;
  return tables.map(({ name }) => name);
}

async function* stream<T>(items: Items<T>): AsyncGenerator<T> {
  yield* items;
}

export interface OfferFields {
  readonly cpu?: number;
  readonly ram?: number;
  readonly ramUnit?: 'Binary' | 'Decimal';
  /** Per hour in USD, unless `price` is given. */
  readonly amount?: string;
  readonly price?: Partial<Offer['price']>;
  readonly facts?: Partial<MachineFacts>;
  readonly excluded?: ExclusionReason;
  readonly terms?: OfferedTerms;
  readonly monthlyCap?: string;
}

/** A machine of 2 cpu and 4 GiB at 0.06 USD an hour, which is 0.001 a minute. */
export function offer(regionCode: string, name: string, fields: OfferFields = {}): CatalogueItem {
  const { cpu = 2, ram = 4, ramUnit = 'Binary', amount = '0.06', price = {} } = fields;
  const { facts, excluded, terms, monthlyCap } = fields;
  const made: Offer = {
    regionCode,
    name,
    cpu,
    ram,
    ramUnit,
    price: { amount, per: 'hour', currency: 'USD', ...price },
    ...(facts === undefined ? {} : { facts }),
    ...(excluded === undefined ? {} : { excluded }),
    ...(terms === undefined ? {} : { terms }),
    ...(monthlyCap === undefined ? {} : { monthlyCap }),
  };
  return { kind: 'offer', offer: made };
}

export const region = (code: string, name = code.toUpperCase()): CatalogueItem => ({
  kind: 'region',
  code,
  name,
});

export const regionPrice = (regionCode: string, price: OfferedRegionPrice): CatalogueItem => ({
  kind: 'region-price',
  regionCode,
  price,
});

export function rejected(key: string, named: { regionCode?: string; name?: string } = {}): CatalogueItem {
  return { kind: 'rejected', key, reason: `${key} cannot be used`, ...named };
}

/** `count` machines m1, m2, … in one region. */
export const offers = (regionCode: string, count: number, fields: OfferFields = {}): CatalogueItem[] =>
  Array.from({ length: count }, (_, index) => offer(regionCode, `m${index + 1}`, fields));

/** A plan of a managed database, for 0.06 an hour. */
export function databasePlan(regionCode: string, name: string, currency = 'USD'): CatalogueItem {
  const facts = { nodes: 1, cpu: 2, ram: 4, ramUnit: 'Binary', storage: 80 } as const;
  const price = { amount: '0.06', per: 'hour', currency } as const;
  return { kind: 'database-plan', regionCode, plan: { engine: 'mysql', name, ...facts, price } };
}
