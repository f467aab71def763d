/** `docs/upgrades` is complete, shown by `doctor`, and written into the documentation. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { UPGRADES_PAGE, updatedUpgrades } from '../../docs/generate/upgrades.ts';
import { upgradeFindings } from '../../src/cli/doctor/upgrades.ts';
import { inPackage } from '../../src/config/package.ts';
import { UPGRADES, type Upgrade } from '../../src/config/upgrades.ts';
import { migrationsOf } from '../support/older-migrations.ts';
import { keptReleases, readFixture } from './support/fixture.ts';

it('each file is imported', () => {
  const files = readdirSync(inPackage('docs/upgrades')).sort();
  expect(UPGRADES.map(({ release }) => `${release}.json`)).toEqual(files);
});

it('each release has a fixture, and its migrations up to the one of the fixture are measured', async () => {
  await using today = await migrationsOf({});
  const kept = await keptReleases();
  for (const { release, migrations, steps, back } of UPGRADES) {
    expect(kept).toContain(release);
    const { migration } = await readFixture(release);
    expect(today.tags).toContain(migration);
    expect(migrations.at(-1)?.name).toBe(migration);
    expect(migrations.every(({ ms }) => ms > 0)).toBe(true);
    expect([steps.length, back.length].every((length) => length > 0)).toBe(true);
  }
  // The first two create the tables and cannot be measured on a database with data.
  const measured = UPGRADES.flatMap(({ migrations }) => migrations.map(({ name }) => name));
  const released = today.tags.slice(2, today.tags.indexOf(measured.at(-1) ?? '') + 1);
  expect(measured).toEqual(released);
});

it('docs/upgrades.md matches the data (npm run docs updates it)', () => {
  const page = readFileSync(inPackage(UPGRADES_PAGE), 'utf8');
  expect(page).toBe(updatedUpgrades(page));
});

const release = (more: Partial<Upgrade>): Upgrade => ({
  release: '1.2.0',
  previous: { release: '1.1.0', revision: 'v1.1.0' },
  settings: { added: [], removed: {} },
  measuredWith: '10 machines',
  migrations: [
    { name: '0001_fast', lock: 'SHARE on runs', ms: 5 },
    { name: '0002_slow', lock: 'ACCESS EXCLUSIVE on machines', ms: 70 },
    { name: '0003_new_table', lock: null, ms: 900 },
  ],
  steps: ['back up', 'migrate'],
  back: 'start 1.1.0',
  ...more,
});

it('doctor shows the longest lock of the pending migrations, and the steps of their release', () => {
  const later = release({ release: '1.3.0', migrations: [{ name: '0004_table', lock: null, ms: 1 }] });
  const findings = upgradeFindings(['0002_slow', '0003_new_table', '0004_table'], [release({}), later]);
  const mend = '1. back up; 2. migrate';
  expect(findings).toEqual([
    {
      check: 'upgrade to 1.2.0',
      verdict: 'warning',
      found:
        '2 migrations of this release to apply. The longest lock is ACCESS EXCLUSIVE on machines, 70 ms, by 0002_slow, measured with 10 machines',
      mend,
    },
    {
      check: 'upgrade to 1.3.0',
      verdict: 'warning',
      found: '1 migration of this release to apply; no statement of readers and workers waits for one',
      mend,
    },
  ]);
});

it('doctor shows nothing if no migration is pending', () => {
  expect(upgradeFindings([], [release({})])).toEqual([]);
  expect(upgradeFindings(['0009_of_another_release'], [release({})])).toEqual([]);
});
