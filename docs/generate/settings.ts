/** Writes the parts of the documentation that are made from the code: `npm run docs`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { ALL_SETTINGS } from '../../src/app/feature-settings.ts';
import { inPackage } from '../../src/config/package.ts';

const START = '<!-- settings: made by npm run docs -->';
const END = '<!-- end of settings -->';

/** The README's configuration table. */
export function settingsTable(): string {
  const rows = Object.entries(ALL_SETTINGS).map(([name, { describe, fallback }]) => {
    return `| \`${name}\` | ${describe} | ${fallback === undefined ? '' : `\`${fallback}\``} |`;
  });
  return ['| setting | meaning | default |', '|---|---|---|', ...rows].join('\n');
}

/** The README with its table brought up to date. */
export function updatedReadme(readme: string): string {
  const start = readme.indexOf(START);
  const end = readme.indexOf(END);
  if (start < 0 || end < start) throw new Error(`README.md must hold ${START} and ${END}`);
  return `${readme.slice(0, start)}${START}\n${settingsTable()}\n${readme.slice(end)}`;
}

if (import.meta.main) {
  const path = inPackage('README.md');
  writeFileSync(path, updatedReadme(readFileSync(path, 'utf8')));
}
