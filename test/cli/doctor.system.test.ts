import { describe, expect, it } from 'vitest';
import type { Finding } from '../../src/cli/doctor/finding.ts';
import { examine, findingsText } from '../../src/cli/doctor.ts';
import { openStore } from '../../src/db/connection/connect.ts';
import { beginRun, finishRun, NO_COUNTS, registerSource } from '../../src/sync/runs/run.ts';
import { claimSlot } from '../../src/sync/runs/slots.ts';
import { fleetbook } from '../support/fleetbook.ts';
import { createDatabase } from '../support/postgres.ts';
import { env, PROBLEM, SECRET, useServers } from './doctor-scene.ts';

useServers();

describe('an installation without problems', () => {
  it('is reported as such, with exit code 0', async () => {
    await using own = await createDatabase();
    await using store = openStore({ url: own.url, role: 'worker', connections: 1 });
    await registerSource(store.db, { id: 'hetzner', kind: 'catalogue', adapter: 'hetzner' });
    const begun = await beginRun(store.db, 'hetzner', undefined);
    await finishRun(store.db, begun, 'changed', NO_COUNTS, new Date().toISOString());
    // A source that publishes nothing has a warning.
    await store.sql`
      with p as (insert into providers (id, name) values (78, 'Hetzner') returning id),
      r as (insert into regions (provider_id, code, name) select id, 'a', 'A' from p returning id)
      insert into machines (region_id, name, cpu, ram, ram_unit, price, source_id)
      select id, 'm', 2, 4, 'Binary', 0.001, 'hetzner' from r`;
    await claimSlot(store.db, { schedule: 'publish-sweep', slot: '2026-03-01T10:00:00Z' });
    const all = { ...env, DATABASE_URL: own.url, HETZNER_TOKEN: SECRET, CATALOGUE_RATES: 'EUR:1.1' };
    const { code, stdout, stderr } = await fleetbook(['doctor', '--json'], all);
    const report = JSON.parse(stdout) as { healthy: boolean; findings: Finding[] };
    expect({ code, stderr, healthy: report.healthy }).toEqual({ code: 0, stderr: '', healthy: true });
    expect(report.findings.map(({ check, verdict }) => `${verdict} ${check}`)).toEqual([
      'ok configuration',
      'ok database',
      'ok clock',
      'ok migrations',
      'ok role of workers',
      'ok role of readers',
      'ok Redis',
      'ok queues',
      'ok exports',
      'ok port of the API',
      'ok port of the operators’ pages',
      'ok workers',
      'ok source hetzner',
    ]);
    expect(stdout).not.toContain('hunter2');
    const shown = await fleetbook(['doctor'], all);
    expect([shown.code, shown.stdout]).toEqual([0, expect.stringMatching(/\n\nno problems, 0 warnings\n$/)]);
    for (const line of shown.stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  });
});

describe('the configuration', () => {
  it('is reported completely: every wrong setting and source, and the servers', async () => {
    const wrong = {
      ...env,
      PORT: 'http',
      CATALOGUE_CURRENCY: 'dollars',
      HETZNER_URL: `ftp://ada:${SECRET}@x`,
      LINODE_URL: 'http://x',
      LINODE_SCHEDULE: 'often',
      OPS_PORT: '0',
    };
    const { code, stdout } = await fleetbook(['doctor', '--json'], wrong);
    const { healthy, findings } = JSON.parse(stdout) as { healthy: boolean; findings: Finding[] };
    expect({ code, healthy }).toEqual({ code: 1, healthy: false });
    const report = findings.filter(({ check }) => check === 'configuration');
    expect(report.map((each) => each.found)).toEqual([
      'PORT must be a port from 0 to 65535; it is "http"',
      expect.stringMatching(/^CATALOGUE_CURRENCY must be a three-letter/),
      expect.stringMatching(/^the schedule of source "linode" must have five cron fields/),
      expect.stringMatching(/^HETZNER_URL must be a URL that starts with http:.* it is "ftp:\/\/\*\*\*@x"$/),
    ]);
    expect(report.every(({ verdict, mend }) => verdict === 'problem' && mend)).toBe(true);
    expect(stdout).not.toContain('hunter2');
    expect(findings.find(({ check }) => check === 'database')?.verdict).toBe('ok');
    const shown = await fleetbook(['doctor'], wrong);
    expect(shown).toMatchObject({ code: 1, stderr: '' });
    expect(shown.stdout).toMatch(/^PROBLEM configuration: PORT must be a port/m);
    expect(shown.stdout).toMatch(/\n4 problems to fix, \d warnings?\n$/);
  });

  it('without any server has one finding with the remedy', async () => {
    const findings = await examine({ PORT: '0', OPS_PORT: '0' });
    expect(findings.filter(({ verdict }) => verdict === 'problem')).toEqual([
      {
        check: 'database',
        ...PROBLEM,
        found: 'DATABASE_URL is not set',
        mend: expect.stringContaining('give postgres://'),
      },
      {
        check: 'Redis',
        ...PROBLEM,
        found: expect.stringContaining('REDIS_URL is set'),
        mend: expect.stringContaining('redis://host'),
      },
    ]);
    const wrong = await examine({
      DATABASE_URL: 'mysql://x',
      REDIS_URL: 'http://x',
      PORT: '0',
      OPS_PORT: '0',
    });
    expect(wrong.filter(({ verdict }) => verdict === 'problem').map(({ check }) => check)).toEqual([
      'configuration',
      'configuration',
    ]);
  });
});

it('shows a paragraph for each finding, problems with the remedy, within 80 columns', () => {
  const text = findingsText([
    { check: 'database', verdict: 'ok', found: 'PostgreSQL 18.4', mend: null },
    {
      check: 'Redis',
      verdict: 'problem',
      found: 'it evicts '.repeat(12).trim(),
      mend: 'set maxmemory-policy to noeviction',
    },
  ]);
  expect(text).toMatch(/^ok {6}database: PostgreSQL 18\.4\nPROBLEM Redis: it evicts /);
  expect(text).toContain('\n          fix: set maxmemory-policy to noeviction\n');
  expect(text).toMatch(/\n1 problem to fix, 0 warnings\n$/);
  for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
});
