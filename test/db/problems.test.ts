/** Overview, doctor, status and alerts show the same problems. */
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { checkSources } from '../../src/cli/doctor/sources.ts';
import { statusCommand } from '../../src/cli/status.ts';
import { inspectConfig } from '../../src/config/config.ts';
import { readSourceFacts, workerProblem } from '../../src/db/problems.ts';
import { sourceStatus } from '../../src/db/sources.ts';
import { sourceOfAlert } from '../../src/domain/alert.ts';
import { judgeSources, otherProblems } from '../../src/features/console/routes/overview.ts';
import { findConditions } from '../../src/features/notifications/conditions.ts';
import { DEFAULT_RULES } from '../../src/features/notifications/rules.ts';
import { offer, openScene, region, type Scene } from '../sync/scene.ts';

/** The source whose state the tests change. It has read one machine an hour ago. */
const ID = 'linode';
const MAX_AGE = 3 * 3600;

let scene: Scene;
let env: Record<string, string>;
beforeAll(async () => {
  scene = await openScene();
  env = {
    DATABASE_URL: scene.db.url,
    CATALOGUE_CURRENCY: 'EUR',
    CATALOGUE_RATES: 'USD:1',
    LINODE_URL: 'http://127.0.0.1:1',
    LINODE_SCHEDULE: '0 * * * *',
  };
});
afterAll(() => scene[Symbol.asyncDispose]());

beforeEach(async () => {
  const { sql } = scene;
  await scene.reset();
  await scene.catalogue([region('fsn1'), offer('fsn1', 'm1')], { source: ID });
  await sql`update sources set registered_at = now() - interval '1 day'`;
  await sql`update region_freshness set verified_at = now() - interval '1 hour'`;
  await age(1)(sql);
});

async function shown() {
  const now = new Date();
  const configured = [{ id: ID, kind: 'catalogue', maxAge: MAX_AGE, schedule: '0 * * * *' }] as const;
  const facts = await readSourceFacts(scene.store.db, configured);
  const overview = judgeSources(configured, { ...facts, strips: [], alerts: [] }, now);
  const findings = await checkSources(inspectConfig(env), env, () => now);
  const conditions = await findConditions(scene.store.db, configured, DEFAULT_RULES, now);
  let text = '';
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    text += String(chunk);
    return true;
  });
  await statusCommand(env, { json: true }).finally(() => spy.mockRestore());
  const status = (JSON.parse(text) as { id: string; problems: { kind: string; severity: string }[] }[]).find(
    ({ id }) => id === ID,
  );
  const problems = overview.problems.filter(({ source }) => source === ID);
  return {
    state: overview.sources.find(({ id }) => id === ID)?.state,
    kinds: problems.map(({ kind }) => kind),
    severity: overview.sources.find(({ id }) => id === ID)?.severity,
    inStatus: status?.problems.map(({ kind }) => kind),
    doctor: findings.find(({ check }) => check === `source ${ID}`)?.verdict,
    alerts: conditions.filter((each) => sourceOfAlert(each) === ID).map(({ kind }) => kind),
  };
}

type Change = (sql: Scene['sql']) => Promise<unknown>;
const fail =
  (times: number): Change =>
  (sql) =>
    sql`insert into sync_runs (source_id, fence, outcome, error, finished_at)
      select ${ID}, 0, 'failed', 'answers 503', now() from generate_series(1, ${times}::int)`;
const hold: Change = (sql) => sql`
  insert into held_batches (source_id, run_id, broken, pattern, worst)
  select ${ID}, max(id), '[{"guard": "priceRatio", "found": 2, "limit": 1, "detail": "prices rise"}]',
    'all prices × 100: a unit?', '{"rows": [], "total": 0}' from sync_runs`;
const age =
  (hours: number): Change =>
  (sql) =>
    sql`update sources set verified_at = now() - make_interval(hours => ${hours}) where id = ${ID}`;
const disable =
  (by: string): Change =>
  (sql) =>
    sql`update sources set disabled_at = now(), disabled_by = ${by}, disabled_reason = 'it hangs' where id = ${ID}`;
const unread =
  (hours: number): Change =>
  (sql) =>
    sql`insert into quarantined_rows (source_id, row_key, reason, code, region_code, first_seen_at)
      values (${ID}, 'r1', 'answers 500', 'unread_region', 'r1', now() - make_interval(hours => ${hours}))`;

describe('a source', () => {
  it.each<[what: string, changes: Change[], expected: Partial<Awaited<ReturnType<typeof shown>>>]>([
    ['is fresh', [], { state: 'ok', kinds: [], severity: null, doctor: 'ok', alerts: [] }],
    ['failed once', [fail(1)], { kinds: ['failing'], severity: 'warning', alerts: [] }],
    [
      'failed three times',
      [fail(3)],
      { kinds: ['failing'], severity: 'problem', alerts: ['source_failing'] },
    ],
    ['is stale', [age(4)], { kinds: ['stale'], severity: 'problem', alerts: ['source_stale'] }],
    ['is held', [hold], { kinds: ['held'], severity: 'warning', alerts: ['batch_held'] }],
    [
      'is held and stale',
      [hold, age(4)],
      {
        state: 'held',
        kinds: ['held', 'stale'],
        severity: 'problem',
        alerts: ['batch_held', 'source_stale'],
      },
    ],
    ['has an unread region', [unread(1)], { kinds: ['unread-regions'], severity: 'warning', alerts: [] }],
    [
      'has a region that was unread for too long',
      [unread(4)],
      { kinds: ['stale-regions'], severity: 'problem', alerts: ['region_stale'] },
    ],
    [
      'publishes nothing',
      [(sql) => sql`update machines set excluded_reason = 'zero_price'`],
      { kinds: ['empty'], severity: 'warning', alerts: [] },
    ],
    [
      'was disabled by an operator',
      [age(9), disable('ada')],
      { state: 'disabled', kinds: [], severity: null, doctor: 'warning', alerts: [] },
    ],
    [
      'is paused',
      [
        (sql) =>
          sql`update sources set paused_until = now() + interval '1 hour', paused_reason = 'it ended its worker'`,
      ],
      { kinds: ['paused'], severity: 'warning', alerts: ['source_paused'] },
    ],
  ])('that %s is the same everywhere', async (_, changes, expected) => {
    for (const change of changes) await change(scene.sql);
    const found = await shown();
    expect(found).toMatchObject(expected);
    expect(found.inStatus).toEqual(found.kinds);
    if (!('doctor' in expected)) expect(found.doctor).toBe(found.severity);
  });

  it('that fails has failed since the first failure in a row', async () => {
    await scene.sql`insert into sync_runs (source_id, fence, outcome, finished_at) values
      (${ID}, 0, 'failed', now() - interval '9 hours'), (${ID}, 0, 'unchanged', now() - interval '8 hours'),
      (${ID}, 0, 'interrupted', '2026-01-01T00:00:00Z'), (${ID}, 0, 'failed', now())`;
    const [status] = (await sourceStatus(scene.store.db)).filter(({ id }) => id === ID);
    expect(status).toMatchObject({ failedRuns: 2, failingSince: '2026-01-01T00:00:00Z' });
  });
});

it('a worker that is silent, a queue that is away and an alert without a page of its own are problems', () => {
  const now = new Date('2026-01-01T00:10:00Z');
  expect(otherProblems(workerProblem('2026-01-01T00:08:00Z', now), [], [])).toEqual([]);
  const silent = workerProblem('2026-01-01T00:00:00Z', now);
  const alert = (kind: string) =>
    ({ id: 1, kind, subject: 'x', source: undefined, summary: 'what it is', acknowledgement: null }) as const;
  expect(otherProblems(silent, null, [alert('cache_differs'), alert('source_stale')])).toMatchObject([
    { severity: 'problem', about: 'workers', text: 'none runs: the last sign of one is 10 min old' },
    { severity: 'problem', about: 'queues’ Redis' },
    { severity: 'warning', about: 'cache_differs', path: '/alerts' },
  ]);
});
