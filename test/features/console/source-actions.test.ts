import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { auditRecords } from '../../../src/features/console/queries/audit.ts';
import type {
  ShownSetting,
  SourceAnswer,
  TimelineAnswer,
} from '../../../src/features/console/routes/answers.ts';
import { Browser } from '../operators/accounts-scene.ts';
import { type ConsoleScene, openConsoleScene } from './scene.ts';

let scene: ConsoleScene;
beforeAll(async () => {
  scene = await openConsoleScene();
  await scene.sync(1);
  // A source that is not configured, with published data.
  await scene.worker.store.sql.begin(async (sql) => {
    await sql`insert into sources (id, kind, adapter) values ('old', 'catalogue', 'hetzner')`;
    await sql`update machines set source_id = 'old' where name in ('cx11', 'cx61')`;
  });
});
afterAll(() => scene[Symbol.asyncDispose]());

const source = async (id: string) => (await scene.get(`/api/sources/${id}`)) as SourceAnswer;
const audited = async () =>
  (await auditRecords(scene.worker.store.db, {})).rows
    .filter(({ action }) => action.startsWith('source.'))
    .map(({ action, by, subject, reason }) => [action, by, subject.id, reason]);
const timeline = async (id: string) =>
  ((await scene.get(`/api/sources/${id}/timeline`)) as TimelineAnswer).entries;

describe('a source in the console', () => {
  it('shows the origin of each setting, and no secret', async () => {
    const settings = (await scene.get('/api/sources/hetzner/settings')) as ShownSetting[];
    expect(settings).toContainEqual({
      name: 'token',
      value: '***',
      from: 'environment',
      variable: 'HETZNER_TOKEN',
    });
    expect(settings).toContainEqual({
      name: 'schedule',
      value: '0 * * * *',
      from: 'environment',
      variable: 'HETZNER_SCHEDULE',
    });
    expect(settings.find(({ name }) => name === 'limits.priceRatio')).toMatchObject({ from: 'default' });
    expect(JSON.stringify(settings)).not.toContain('secret');
    expect(await scene.get('/api/sources/old/settings')).toEqual([]);
    expect(await source('hetzner')).toMatchObject({ scheduleInWords: 'every hour at minute 0 UTC' });
  });

  it('is disabled and enabled with a reason, which its timeline shows', async () => {
    expect(await scene.post('/api/sources/hetzner/disable', { reason: 'wrong prices' })).toMatchObject({
      status: 200,
      body: { source: 'hetzner', disabled: { by: 'OPS_TOKEN', reason: 'wrong prices' } },
    });
    expect(await source('hetzner')).toMatchObject({
      source: { state: 'disabled', disabled: { reason: 'wrong prices' }, nextSlot: null },
      nextSlots: [],
    });
    expect(await scene.post('/api/sources/hetzner/disable', { reason: 'again' })).toMatchObject({
      status: 409,
      body: { error: expect.stringContaining('was disabled already, by OPS_TOKEN') },
    });
    expect(await scene.post('/api/sources/hetzner/run', {})).toMatchObject({
      status: 409,
      body: { error: 'hetzner is disabled, by OPS_TOKEN; enable it first' },
    });
    expect(await scene.post('/api/sources/hetzner/enable', { reason: 'mended' })).toMatchObject({
      status: 200,
      body: { disabled: null },
    });
    expect(await scene.post('/api/sources/hetzner/enable', { reason: 'again' })).toMatchObject({
      status: 409,
    });
    expect(await audited()).toEqual([
      ['source.enable', 'OPS_TOKEN', 'hetzner', 'mended'],
      ['source.disable', 'OPS_TOKEN', 'hetzner', 'wrong prices'],
    ]);
    expect((await timeline('hetzner')).slice(0, 2)).toMatchObject([
      { kind: 'action', did: { action: 'source.enable', by: 'OPS_TOKEN', reason: 'mended' } },
      { kind: 'action', did: { action: 'source.disable', reason: 'wrong prices' } },
    ]);
  });

  it('has its running run cancelled with a reason, and no other run', async () => {
    await using live = await scene.worker.liveRuns.begin('hetzner', undefined);
    const { id: run } = live.run;
    const cancel = (body: object) => scene.post('/api/sources/hetzner/cancel', body);
    expect(await cancel({ reason: 'it hangs' })).toMatchObject({ status: 400, body: { field: 'run' } });
    expect(await cancel({ reason: 'it hangs', run: run + 1 })).toMatchObject({
      status: 409,
      body: { error: `run ${run + 1} of hetzner is not running; reload this page` },
    });
    expect(await cancel({ reason: 'it hangs', run })).toEqual({
      status: 200,
      body: { source: 'hetzner', run },
    });
    expect(await cancel({ reason: 'again', run })).toMatchObject({ status: 409 });
    expect(await scene.get(`/api/runs/${run}`)).toMatchObject({
      run: { outcome: 'cancelled', error: 'cancelled by OPS_TOKEN: it hangs' },
    });
    expect((await audited())[0]).toEqual(['source.cancel', 'OPS_TOKEN', 'hetzner', 'it hangs']);
  });

  it('that is configured cannot be retired', async () => {
    const body = { reason: 'gone', confirm: 'hetzner' };
    expect(await scene.post('/api/sources/hetzner/retire', body)).toMatchObject({
      status: 409,
      body: { error: expect.stringContaining('hetzner is configured') },
    });
    expect((await source('hetzner')).source.published).toBe(8);
  });

  it('that is not configured is retired by an operator who types its id', async () => {
    expect(await scene.get('/api/sources/old/retirement')).toMatchObject({
      places: [
        { place: 'Hetzner fsn1', known: 2, published: 1 },
        { place: 'Hetzner nbg1', known: 2, published: 1 },
      ],
    });
    for (const confirm of [undefined, '', 'hetzner'])
      expect(await scene.post('/api/sources/old/retire', { reason: 'gone', confirm })).toMatchObject({
        status: 400,
        body: { field: 'confirm', error: 'confirm must be the id of the source, "old", to confirm' },
      });
    expect(await scene.post('/api/sources/old/retire', { reason: 'gone', confirm: 'old' })).toMatchObject({
      status: 200,
      body: { source: 'old', places: [{ published: 1 }, { published: 1 }], published: true },
    });
    expect(await source('old')).toMatchObject({ source: { state: 'retired', known: 0 } });
    expect((await audited())[0]).toEqual(['source.retire', 'OPS_TOKEN', 'old', 'gone']);
    expect(await timeline('old')).toMatchObject([{ kind: 'action', did: { action: 'source.retire' } }]);
  });

  it.each(['disable', 'enable', 'cancel', 'retire'])('does not let a viewer %s it', async (action) => {
    const before = await audited();
    const vera = new Browser(scene.app);
    expect((await vera.signIn('vera')).statusCode).toBe(303);
    const payload = { reason: 'I may not', confirm: 'old' };
    const answer = await vera.sendRequest('POST', `/api/sources/old/${action}`, { payload });
    expect([answer.statusCode, answer.json()]).toEqual([
      403,
      { error: 'This needs the role operator; vera has the role viewer.' },
    ]);
    expect(await audited()).toEqual(before);
  });

  it.each(['disable', 'enable', 'retire'])('needs a known id and a reason to %s', async (action) => {
    expect(await scene.post(`/api/sources/old/${action}`, {})).toMatchObject({
      status: 400,
      body: { field: 'reason' },
    });
    const body = { reason: 'x', confirm: 'nowhere' };
    const { status } = await scene.post(`/api/sources/nowhere/${action}`, body);
    expect(status).toBe(action === 'enable' ? 409 : 404);
  });
});
