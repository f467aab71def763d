/** Global set-up of the fault suite: collects the rows, and writes them to docs/reliability.md at the end. */
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import type { Row } from './row.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the rows, one file each. */
    faults: { readonly folder: string };
  }
}

const PAGE = join(import.meta.dirname, '../../../docs/reliability.md');
const TABLE = /(<!-- rows of npm run test:faults -->\n)[\s\S]*?(<!-- end of rows -->)/;
const HEAD =
  '| fault, under load | requests | wrong | lost | errors | over 1 s | p99 | recovered in |\n|---|---|---|---|---|---|---|---|\n';

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'fleetbook-fault-rows-'));
  project.provide('faults', { folder });
  return async () => {
    const files = (await readdir(folder)).filter((name) => name.endsWith('.json'));
    const rows: Row[] = await Promise.all(
      files.map(async (name) => JSON.parse(await readFile(join(folder, name), 'utf8'))),
    );
    await rm(folder, { recursive: true, force: true });
    // The system layer runs shorter faults, and CI has other machines. Their figures do not belong on the page.
    if (rows.length > 0 && project.name === 'faults' && !process.env.CI) await write(rows);
  };
}

/** Replaces the rows of this run. Other rows stay. */
async function write(rows: readonly Row[]): Promise<void> {
  const page = await readFile(PAGE, 'utf8');
  const [found = ''] = TABLE.exec(page) ?? [];
  const lines = new Map<string, string>();
  for (const line of found.split('\n')) {
    const [, fault] = /^\| ((?!fault,|-).+?) \|/.exec(line) ?? [];
    if (fault !== undefined) lines.set(fault, line);
  }
  for (const row of rows) lines.set(row.fault, lineOf(row));
  const table = [...lines].sort(([a], [b]) => a.localeCompare(b, 'en')).map(([, line]) => `${line}\n`);
  await writeFile(
    PAGE,
    page.replace(TABLE, (_, begin: string, end: string) => `${begin}${HEAD}${table.join('')}${end}`),
  );
}

function lineOf({ fault, requests, wrong, lost, errors, slow, p99, recoverySeconds }: Row): string {
  return `| ${[fault, requests, wrong, lost, errors, slow, `${p99} ms`, `${recoverySeconds} s`].join(' | ')} |`;
}
