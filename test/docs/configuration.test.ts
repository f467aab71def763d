import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { PAGE, SCHEMA_FILE, schemaText, updatedPage } from '../../docs/generate/configuration.ts';
import { inPackage } from '../../src/config/package.ts';

it('docs/configuration.md lists every setting and field of the code (npm run docs updates it)', () => {
  const page = readFileSync(inPackage(PAGE), 'utf8');
  expect(page).toBe(updatedPage(page));
});

it('the JSON Schema of the file matches the code and is part of the package (npm run docs updates it)', () => {
  expect(readFileSync(inPackage(SCHEMA_FILE), 'utf8')).toBe(schemaText());
  const { files } = JSON.parse(readFileSync(inPackage('package.json'), 'utf8')) as { files: string[] };
  expect(files).toContain('docs');
});
