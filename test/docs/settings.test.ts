import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { configurationPage, SCHEMA_FILE, schemaText } from '../../docs/generate/configuration.ts';
import { updatedReadme } from '../../docs/generate/settings.ts';
import { inPackage } from '../../src/config/package.ts';

it('lists every setting in the README as it is in the code (npm run docs)', () => {
  const readme = readFileSync(inPackage('README.md'), 'utf8');
  expect(readme).toBe(updatedReadme(readme));
});

it('describes the file of sources as it is in the code, with every limit (npm run docs)', () => {
  expect(readFileSync(inPackage('docs/configuration.md'), 'utf8')).toBe(configurationPage());
});

it('ships the JSON Schema of that file as it is in the code (npm run docs)', () => {
  expect(readFileSync(inPackage(SCHEMA_FILE), 'utf8')).toBe(schemaText());
  const { files } = JSON.parse(readFileSync(inPackage('package.json'), 'utf8')) as { files: string[] };
  expect(files).toContain('docs');
});
