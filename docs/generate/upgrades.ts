/** Writes the part of docs/upgrades.md about releases from their data. Part of `npm run docs`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { inPackage } from '../../src/config/package.ts';
import { UPGRADES, type Upgrade } from '../../src/config/upgrades.ts';
import { table } from './markdown.ts';

export const UPGRADES_PAGE = 'docs/upgrades.md';
const START = '<!-- upgrades: made by npm run docs -->';
const END = '<!-- end of upgrades -->';

function section({ release, steps, back, settings, measuredWith, migrations }: Upgrade): string {
  const removed = Object.entries(settings.removed).map(([name, instead]) => [`\`${name}\``, instead]);
  const rows = migrations.map(({ name, lock, ms }) => [`\`${name}\``, lock ?? 'none', String(ms)]);
  const added = settings.added.map((name) => `\`${name}\``).join(', ');
  return [
    `### ${release}`,
    steps.map((step, i) => `${i + 1}. ${step}`).join('\n'),
    `**Way back.** ${back}`,
    ...(added ? [`**New settings:** ${added}`] : []),
    ...(removed.length > 0 ? [rowsOf(['removed setting', 'instead'], removed)] : []),
    `Migrations, each measured alone with ${measuredWith}:`,
    rowsOf(['migration', 'strongest lock on existing tables', 'ms'], rows),
  ].join('\n\n');
}

const rowsOf = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  table(
    head,
    rows.map((cells) => `| ${cells.join(' | ')} |`),
  );

/** Returns the page with its releases replaced, the newest first. */
export function updatedUpgrades(page: string): string {
  const start = page.indexOf(START);
  const end = page.indexOf(END);
  if (start < 0 || end < start) throw new Error(`${UPGRADES_PAGE} must contain ${START} and ${END}`);
  const releases = UPGRADES.toReversed().map(section).join('\n\n');
  return `${page.slice(0, start)}${START}\n\n${releases}\n\n${page.slice(end)}`;
}

if (import.meta.main) {
  const path = inPackage(UPGRADES_PAGE);
  writeFileSync(path, updatedUpgrades(readFileSync(path, 'utf8')));
}
