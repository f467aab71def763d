import { type MigrationImpact, UPGRADES, type Upgrade } from '../../config/upgrades.ts';
import { count } from '../terminal/output.ts';
import { type Finding, warning } from './finding.ts';

/** Returns the impact of each release whose migrations are pending, with its steps. */
export function upgradeFindings(
  pending: readonly string[],
  upgrades: readonly Upgrade[] = UPGRADES,
): Finding[] {
  return upgrades.flatMap((upgrade) => {
    const ofRelease = upgrade.migrations.filter(({ name }) => pending.includes(name));
    if (ofRelease.length === 0) return [];
    const { release, steps } = upgrade;
    const numbered = steps.map((step, i) => `${i + 1}. ${step}`).join('; ');
    return [warning(`upgrade to ${release}`, impactOf(ofRelease, upgrade), numbered)];
  });
}

function impactOf(migrations: readonly MigrationImpact[], { measuredWith }: Upgrade): string {
  const locking = migrations.filter(({ lock }) => lock !== null);
  const [longest] = locking.toSorted((a, b) => b.ms - a.ms);
  const all = `${count(migrations.length, 'migration')} of this release to apply`;
  if (!longest) return `${all}; no statement of readers and workers waits for one`;
  return `${all}. The longest lock is ${longest.lock}, ${longest.ms} ms, by ${longest.name}, measured with ${measuredWith}`;
}
