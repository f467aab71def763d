/** Writes the table of docs/settings.md from the code. Part of `npm run docs`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { ALL_SETTINGS } from '../../src/app/features.ts';
import { inPackage } from '../../src/config/package.ts';

export const SETTINGS_PAGE = 'docs/settings.md';
const START = '<!-- settings: made by npm run docs -->';
const END = '<!-- end of settings -->';

/** Returns the table of all settings. */
function settingsTable(): string {
  const rows = Object.entries(ALL_SETTINGS).map(([name, { describe, fallback }]) => {
    return `| \`${name}\` | ${describe} | ${fallback === undefined ? '' : `\`${fallback}\``} |`;
  });
  return ['| setting | meaning | default |', '|---|---|---|', ...rows].join('\n');
}

/** Returns the page with its table replaced. */
export function updatedSettings(page: string): string {
  const start = page.indexOf(START);
  const end = page.indexOf(END);
  if (start < 0 || end < start) throw new Error(`${SETTINGS_PAGE} must contain ${START} and ${END}`);
  return `${page.slice(0, start)}${START}\n${settingsTable()}\n${page.slice(end)}`;
}

if (import.meta.main) {
  const path = inPackage(SETTINGS_PAGE);
  writeFileSync(path, updatedSettings(readFileSync(path, 'utf8')));
}
