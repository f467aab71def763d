import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { inPackage } from '../../src/config/package.ts';
import { SETTINGS } from '../../src/config/settings.ts';
import { type MemoryBudget, memoryBudget } from '../../src/snapshot/read/budget.ts';

const NAMES: Readonly<Record<keyof MemoryBudget, string>> = {
  documents: 'documents',
  search: 'of these at most for the search index',
  responses: 'answers of the response cache',
  machineRegions: 'regions of machines',
  costs: 'costs of clusters',
  prices: 'price histories',
  unknownTokens: 'unknown tokens',
};

it('the parts of MEMORY_LIMIT in docs/performance.md are those of the code', () => {
  const limit = Number(SETTINGS.MEMORY_LIMIT.fallback);
  const parts = memoryBudget(limit);
  const row = (name: string, bytes: number) =>
    `| ${name} | ${((bytes / limit) * 100).toFixed(1)} % | ${Number((bytes / 1e6).toFixed(1))} MB |`;
  const { search: _, ...stored } = parts;
  const reserve = limit - Object.values(stored).reduce((sum, part) => sum + part);
  const page = readFileSync(inPackage('docs/performance.md'), 'utf8');
  const [, table = ''] = /\| part of `MEMORY_LIMIT` .*\n\|.*\n((?:\|.*\n)+)/.exec(page) ?? [];
  expect(table.trim().split('\n')).toEqual([
    row('reserve', reserve),
    ...Object.entries(NAMES).map(([part, name]) => row(name, parts[part as keyof MemoryBudget])),
  ]);
});
