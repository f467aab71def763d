import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { configurationPage, SCHEMA_FILE, schemaText } from '../../docs/generate/configuration.ts';
import { SETTINGS_PAGE, updatedSettings } from '../../docs/generate/settings.ts';
import { inPackage } from '../../src/config/package.ts';

it('docs/settings.md lists every setting of the code (npm run docs updates it)', () => {
  const page = readFileSync(inPackage(SETTINGS_PAGE), 'utf8');
  expect(page).toBe(updatedSettings(page));
});

it('docs/configuration.md matches the code (npm run docs updates it)', () => {
  expect(readFileSync(inPackage('docs/configuration.md'), 'utf8')).toBe(configurationPage());
});

it('the JSON Schema of the file matches the code and is part of the package (npm run docs updates it)', () => {
  expect(readFileSync(inPackage(SCHEMA_FILE), 'utf8')).toBe(schemaText());
  const { files } = JSON.parse(readFileSync(inPackage('package.json'), 'utf8')) as { files: string[] };
  expect(files).toContain('docs');
});
