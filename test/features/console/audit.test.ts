import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { audit } from '../../../src/db/audit.ts';
import type { Decider } from '../../../src/domain/operator.ts';
import { activityMark } from '../../../src/features/console/console.ts';
import type { AuditTerms } from '../../../src/features/console/queries/audit.ts';
import type { AuditAnswer } from '../../../src/features/console/routes/answers.ts';
import { addOrganizations } from './clusters-scene.ts';
import { type ConsoleScene, openConsoleScene } from './scene.ts';

const EVE: Decider = { by: 'eve@desk', how: 'cli', address: 'eve@desk', reason: 'because' };

let scene: ConsoleScene;
beforeAll(async () => {
  scene = await openConsoleScene();
  // One row for each creation, by ada@desk. The scene has created two operators before.
  await addOrganizations(scene, { acme: 'Acme', zeta: 'Zeta' });
  await scene.post('/api/organizations/acme/tokens', { scopes: ['machines:read'], reason: 'for CI' });
  for (const id of ['hetzner', 'linode'])
    await audit(scene.worker.store.db, EVE, { action: 'source.disable', subject: { kind: 'source', id } });
});
afterAll(() => scene[Symbol.asyncDispose]());

const log = async (query = '') => (await scene.get(`/api/audit?limit=1000${query}`)) as AuditAnswer;
const rowsOf = async (query: string) =>
  (await log(query)).rows.map(({ action, subject }) => `${action} ${subject.id}`);

describe('the audit log', () => {
  it('has actor, action, time, address, way and reason, newest first', async () => {
    const { rows, hasOlder } = await log();
    expect([rows.length, hasOlder]).toEqual([7, false]);
    expect(rows.map(({ id }) => id)).toEqual(rows.map(({ id }) => id).toSorted((a, b) => b - a));
    expect(rows[0]).toEqual({
      id: expect.any(Number),
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}Z$/),
      by: 'eve@desk',
      how: 'cli',
      tokenId: null,
      address: 'eve@desk',
      action: 'source.disable',
      subject: { kind: 'source', id: 'linode' },
      reason: 'because',
      details: {},
      organization: null,
    });
    expect(rows[2]).toMatchObject({
      by: 'OPS_TOKEN',
      how: 'token',
      address: '127.0.0.1',
      action: 'token.create',
      reason: 'for CI',
      organization: 'acme',
    });
  });

  it.each([
    ['&by=eve@desk', ['source.disable linode', 'source.disable hetzner']],
    ['&by=eve', []],
    ['&action=organization.create', ['organization.create zeta', 'organization.create acme']],
    ['&kind=source', ['source.disable linode', 'source.disable hetzner']],
    ['&kind=organization&id=zeta', ['organization.create zeta']],
    ['&by=eve@desk&kind=source&id=hetzner&since=1h', ['source.disable hetzner']],
    ['&since=2999-01-01', []],
  ])('is filtered by %s', async (query, expected) => {
    expect(await rowsOf(query)).toEqual(expected);
  });

  it('is filtered by the time, to the second', async () => {
    await scene.worker.store.sql`
      insert into audit_log (at, by, how, action, subject_kind, subject_id)
      values (now() - interval '2 hours', 'old', 'cli', 'source.retire', 'source', 'ovh')`;
    expect(await rowsOf('&since=3h&by=old')).toEqual(['source.retire ovh']);
    expect(await rowsOf('&since=1h&by=old')).toEqual([]);
  });

  it('has pages without gaps, also while rows are added', async () => {
    const all = (await log('&kind=source')).rows;
    const first = (await scene.get('/api/audit?kind=source&limit=2')) as AuditAnswer;
    await audit(scene.worker.store.db, EVE, {
      action: 'source.enable',
      subject: { kind: 'source', id: 'linode' },
    });
    const before = first.rows.at(-1)?.id;
    const second = (await scene.get(`/api/audit?kind=source&limit=2&before=${before}`)) as AuditAnswer;
    expect([first.hasOlder, second.hasOlder]).toEqual([true, false]);
    expect([...first.rows, ...second.rows]).toEqual(all);
  });

  it('lists the values of its filters, each once', async () => {
    const terms = (await scene.get('/api/audit-terms')) as AuditTerms;
    const { rows } = await log();
    const once = (all: string[]) => [...new Set(all)].sort();
    expect(terms).toEqual({
      people: once(rows.map(({ by }) => by)),
      actions: once(rows.map(({ action }) => action)),
      kinds: once(rows.map(({ subject }) => subject.kind)),
    });
    expect(terms.people).toContain('OPS_TOKEN');
  });

  it.each([
    ['since', 'since=lately'],
    ['since', 'since=0000-01-01'],
    ['before', 'before=0'],
    ['id', 'id=acme'],
    ['limit', 'limit=1001'],
  ])('rejects a bad %s', async (field, query) => {
    expect(await scene.get(`/api/audit?${query}`)).toMatchObject({ field, error: expect.any(String) });
  });

  it('notifies open pages of a new row', async () => {
    const before = await activityMark(scene.worker.store.db);
    expect(await activityMark(scene.worker.store.db)).toBe(before);
    await audit(scene.worker.store.db, EVE, {
      action: 'source.disable',
      subject: { kind: 'source', id: 'x' },
    });
    expect(await activityMark(scene.worker.store.db)).not.toBe(before);
  });
});
