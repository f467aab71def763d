/** Commands that change something outside of a register also write a row to the audit log. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStore } from '../../src/db/connection/connect.ts';
import { readLineage } from '../../src/db/lineage.ts';
import { auditRecords } from '../../src/features/console/queries/audit.ts';
import { type Receiver, receiver } from '../features/notifications/webhook-receiver.ts';
import { createDatabase } from '../support/postgres.ts';
import { runCommand } from '../support/run-command.ts';
import { type CommandScene, openCommandScene } from './scene.ts';

describe('the audit log', { timeout: 240_000 }, () => {
  let here: CommandScene;
  let hook: Receiver;
  beforeAll(async () => {
    [here, hook] = await Promise.all([openCommandScene(), receiver()]);
  });
  afterAll(() => Promise.all([here[Symbol.asyncDispose](), hook[Symbol.asyncDispose]()]));

  const run = (...args: string[]) =>
    runCommand([...args, '--by', 'ada', '--reason', 'to try it'], {
      ...here.env,
      ALERT_WEBHOOK_URL: hook.url,
    });
  const last = async () => {
    const [row] = (await auditRecords(here.scene.store.db, { limit: 1 })).rows;
    return row ?? expect.unreachable('nothing was written');
  };

  it('has the operator of a publication', async () => {
    expect((await run('publish')).code).toBe(0);
    expect(await last()).toMatchObject({
      action: 'cache.publish',
      by: 'ada',
      how: 'cli',
      reason: 'to try it',
      subject: { kind: 'cache', id: 'all' },
    });
  });

  it('has the operator of a restore, and both lineages', async () => {
    const before = await readLineage(here.scene.sql);
    expect((await run('restored')).code).toBe(0);
    expect(await last()).toMatchObject({
      action: 'database.restored',
      by: 'ada',
      subject: { kind: 'lineage', id: await readLineage(here.scene.sql) },
      details: { before },
    });
  });

  it('has the operator of a repeated message, and no row without a message', async () => {
    await here.scene.sql`insert into messages (receiver, message_id, body)
      values ('default', 'msg_1', '{"type":"alerts.opened"}')`;
    expect((await run('alert', 'resend', '1')).code).toBe(0);
    const row = await last();
    expect(row).toMatchObject({
      action: 'alert.resend',
      subject: { kind: 'delivery', id: '1' },
      details: { webhook: 'default', message: 'msg_1' },
    });
    expect((await run('alert', 'resend', '99')).code).toBe(1);
    expect(await last()).toEqual(row);
  });

  it('has the operator of a tested webhook, without its address', async () => {
    expect((await run('alert', 'test', 'default')).code).toBe(0);
    const row = await last();
    expect(row).toMatchObject({
      action: 'alert.test',
      subject: { kind: 'webhook', id: 'default' },
      details: {},
    });
    expect(JSON.stringify(row)).not.toContain(hook.url);
    expect((await run('alert', 'test', 'other')).code).toBe(2);
    expect(await last()).toEqual(row);
  });

  it('has the operator of a migration that applied something', async () => {
    await using empty = await createDatabase({ migrated: false });
    const migrate = () => runCommand(['migrate', '--by', 'ada'], { DATABASE_URL: empty.url });
    expect((await migrate()).code).toBe(0);
    expect((await migrate()).code).toBe(0);
    await using store = openStore({ url: empty.url, role: 'owner' });
    const { total, rows } = await auditRecords(store.db, {});
    expect(total).toBe(1);
    expect(rows).toMatchObject([{ action: 'database.migrate', by: 'ada', subject: { kind: 'database' } }]);
    const applied = rows[0]?.details.applied as string[];
    expect(applied[0]).toMatch(/^0000_/);
    expect(rows[0]?.subject.id).toBe(applied.at(-1));
  });
});
