/** Output of commands that read, on a terminal of 80 columns: each line fits, and no word is broken. They need only PostgreSQL. */
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { administration } from '../../src/app/actions/administration.ts';
import { auditCommand } from '../../src/cli/accounts/audit.ts';
import { listOrgs } from '../../src/cli/accounts/org.ts';
import { listTokensCommand } from '../../src/cli/accounts/token.ts';
import { listOrgUsers } from '../../src/cli/accounts/user.ts';
import { clustersCommand, machinesCommand } from '../../src/cli/find.ts';
import { holdList } from '../../src/cli/held/hold.ts';
import { changesCommand } from '../../src/cli/runs/changes.ts';
import { runCommand, runsCommand } from '../../src/cli/runs/runs.ts';
import { pricesCommand } from '../../src/cli/sources/prices.ts';
import { excludedCommand, rejectedCommand } from '../../src/cli/sources/rejected.ts';
import { sourceListCommand, sourceShowCommand } from '../../src/cli/sources/source.ts';
import { statusCommand } from '../../src/cli/status.ts';
import { openStore } from '../../src/db/connection/connect.ts';
import type { Decider } from '../../src/domain/operator.ts';
import { alertDeliveries, alertList } from '../../src/features/notifications/alert-commands.ts';
import { listOperatorsCommand, listTokensOfOperators } from '../../src/features/operators/commands.ts';
import { beginRun, finishRun, NO_COUNTS, registerSource } from '../../src/sync/runs/run.ts';
import {
  addCluster,
  addMachine,
  addOrganization,
  addProvider,
  addRegion,
  addSource,
} from '../snapshot/rows.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';

const WIDTH = 80;
const opened = new AsyncDisposableStack();
let db: TestDatabase;
let env: Record<string, string>;
const columns = Object.getOwnPropertyDescriptor(process.stdout, 'columns');

beforeAll(async () => {
  db = opened.use(await createDatabase());
  // Nothing listens at the address of Redis.
  const REDIS_URL = 'redis://127.0.0.1:1';
  env = { DATABASE_URL: db.url, REDIS_URL, AZURE_URL: 'http://127.0.0.1:1', CATALOGUE_RATES: 'EUR:1.1' };
  await using store = openStore({ url: db.url, role: 'worker', connections: 1 });
  const { sql } = store;
  await registerSource(store.db, { id: 'azure', kind: 'catalogue', adapter: 'azure' });
  await addSource(sql, 'managed-postgres', 'clusters');
  const region = await addRegion(sql, await addProvider(sql, 4, 'Microsoft Azure'), 'germanywestcentral');
  const machine = await addMachine(sql, region, { name: 'Standard_E96ias_v5', source: 'azure' });
  await addMachine(sql, region, {
    name: 'Standard_NC24ads_A100_v4',
    source: 'azure',
    excluded: 'accelerator',
  });
  const prices = [
    ['2026-03-01T10:00:00Z', '2026-03-02T10:00:00Z'],
    ['2026-03-02T10:00:00Z', null],
  ];
  for (const [from, to] of prices)
    await sql`insert into machine_prices (machine_id, price, source_amount, source_per, source_currency, valid_from, valid_to)
      values (${machine}, 0.1128, 6.7683333333, 'hour', 'EUR', ${from ?? ''}, ${to ?? null})`;
  const organization = await addOrganization(sql, 'customer-analytics-production');
  await addCluster(sql, organization, {
    slug: 'orders-warehouse-replica-eu-west',
    source: 'managed-postgres',
    regionId: region,
    machineId: machine,
  });
  const decider: Decider = {
    by: 'ada.lovelace@operations.example.com',
    how: 'cli',
    address: 'ada@build-runner-17.operations.example.com',
    reason: 'the contract was extended by the sales department until the end of the year',
  };
  const named = { id: organization, slug: 'customer-analytics-production', name: 'Customer analytics' };
  await administration(store.db, decider).createToken(named, {
    name: 'nightly export to the data warehouse',
    scopes: ['machines:read', 'clusters:read'],
    expires: new Date('2027-01-31T12:00:00Z'),
  });
  const run = await beginRun(store.db, 'azure', undefined);
  await finishRun(
    store.db,
    run,
    'failed',
    undefined,
    '2026-03-02T10:00:00Z',
    'Standard_E96ias_v5 answers 503 '.repeat(4),
  );
  const held = await beginRun(store.db, 'azure', undefined);
  await finishRun(store.db, held, 'held', NO_COUNTS, '2026-03-02T11:00:00Z');
  const broken = [
    { guard: 'removed', found: 40, limit: 10, detail: '40 of 120 machines are gone (33 %, limit 20 %)' },
    {
      guard: 'repriced',
      found: 60,
      limit: 10,
      detail: '60 of 120 machines have another price (50 %, limit 30 %)',
    },
  ];
  await sql`insert into held_batches (source_id, run_id, broken, pattern, worst)
    values ('azure', ${held.id}, ${sql.json(broken)}, 'all prices × 100: a unit?', '{"rows": [], "total": 0}')`;
  await sql`insert into quarantined_rows (source_id, row_key, reason, code, region_code, name)
    select 'azure', 'Standard_D' || i || 'ads_v5@germanywestcentral', 'retailPrice must be a decimal number above 0; it is
    "0", which is what the list of a retired meter says', 'invalid', 'germanywestcentral', 'Standard_D' from generate_series(1, 5) i`;
  await sql`insert into quarantined_rows (source_id, row_key, reason, code, region_code)
    values ('azure', 'austriaeast', 'the list of meters of this region answers 503 and was not read again in time', 'unread_region', 'austriaeast')`;
  await sql`insert into operators (name, role) values ('ada.lovelace@operations.example.com', 'admin')`;
  await sql`insert into alerts (key, kind, subject, summary, details, notified_at)
    values ('a', 'source_failing', 'azure', ${'azure has failed several times in a row '.repeat(3)}, '{}', now())`;
  await sql`insert into messages (receiver, message_id, body, attempts, last_error)
    values ('operations-on-call', 'msg_1', '{"type":"alerts.opened"}', 3, 'it could not be reached (UND_ERR_CONNECT_TIMEOUT)')`;
  Object.defineProperty(process.stdout, 'columns', { value: WIDTH, configurable: true });
});
afterAll(async () => {
  if (columns) Object.defineProperty(process.stdout, 'columns', columns);
  else Reflect.deleteProperty(process.stdout, 'columns');
  await opened.disposeAsync();
});

async function printed(command: () => Promise<void>): Promise<string> {
  let text = '';
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    text += String(chunk);
    return true;
  });
  await command().finally(() => spy.mockRestore());
  return text;
}

it.each<[string, string, () => Promise<void>]>([
  ['status', 'azure', () => statusCommand(env, {})],
  ['source list', 'azure', () => sourceListCommand(env, {})],
  ['source show', 'AZURE_URL', () => sourceShowCommand(env, 'azure', {})],
  ['hold list', 'azure: batch 1', () => holdList(env, {})],
  ['hold list --all', 'waits', () => holdList(env, { all: true })],
  ['rejected', 'Standard_D1ads_v5@germanywestcentral', () => rejectedCommand(env, 'azure', {})],
  ['excluded', 'Standard_NC24ads_A100_v4', () => excludedCommand(env, 'azure', {})],
  ['runs', 'failed', () => runsCommand(env, 'azure', {})],
  ['run', 'failed', () => runCommand(env, '1', {})],
  ['changes', 'since', () => changesCommand(env, { since: '7d' })],
  ['machines', 'Standard_E96ias_v5@germanywestcentral', () => machinesCommand(env, undefined, {})],
  ['clusters', 'orders-warehouse-replica-eu-west', () => clustersCommand(env, undefined, {})],
  ['prices', 'EUR/hour', () => pricesCommand(env, 'Standard_E96ias_v5@germanywestcentral', {})],
  ['org list', 'customer-analytics-production', () => listOrgs(env, {})],
  ['user list', 'orders-warehouse', () => listOrgUsers(env, { org: 'customer-analytics-production' })],
  ['token list', 'customer-analytics-production', () => listTokensCommand(env, {})],
  ['operator list', 'ada.lovelace@operations.example.com', () => listOperatorsCommand(env, {})],
  ['operator token list', 'there is no operator token', () => listTokensOfOperators(env, undefined, {})],
  ['audit', 'token.create', () => auditCommand(env, {})],
  ['alert list', 'azure has failed', () => alertList(env, {})],
  ['alert deliveries', 'operations-on-call', () => alertDeliveries(env, {})],
])('%s fits', async (_, word, command) => {
  const text = await printed(command);
  expect(text).toContain(word);
  expect(text.split('\n').filter((line) => line.length > WIDTH)).toEqual([]);
});

it('prices and machines find a machine by its name, region and provider', async () => {
  const byName = JSON.parse(
    await printed(() => pricesCommand(env, 'Standard_E96ias_v5 @ germanywestcentral', { json: true })),
  );
  const found = JSON.parse(
    await printed(() => machinesCommand(env, 'e96', { provider: 'microsoft azure', json: true })),
  );
  expect(found.rows.map(({ id }: { id: number }) => id)).toEqual([byName.id]);
  const clusters = JSON.parse(
    await printed(() => clustersCommand(env, 'ORDERS', { org: 'customer-analytics-production', json: true })),
  );
  expect(clusters.rows).toMatchObject([{ slug: 'orders-warehouse-replica-eu-west' }]);
  await expect(pricesCommand(env, 'e96@fsn1', {})).rejects.toThrow(
    'no region "fsn1" has a machine "e96"; to find it: fleetbook machines e96',
  );
});
