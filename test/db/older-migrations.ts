import { cp, mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const DRIZZLE = join(import.meta.dirname, '../../drizzle');

interface Journal {
  entries: { idx: number; when: number; tag: string }[];
}

export interface Migrations extends AsyncDisposable {
  readonly path: string;
  readonly tags: readonly string[];
}

/**
 * The migrations of another release, in a temporary folder.
 * @param last the last migration that it has, by name; default: it has all
 * @param more additional migrations, by name
 */
export async function migrationsOf({
  last,
  more = {},
}: {
  last?: string;
  more?: Readonly<Record<string, string>>;
}): Promise<Migrations> {
  const folder = await mkdtempDisposable(join(tmpdir(), 'fleetbook-migrations-'));
  await cp(DRIZZLE, folder.path, { recursive: true });
  const file = join(folder.path, 'meta/_journal.json');
  const journal = JSON.parse(await readFile(file, 'utf8')) as Journal;
  const placeOf = (name: string) => {
    const at = journal.entries.findIndex(({ tag }) => tag.endsWith(name));
    if (at === -1) throw new Error(`there is no migration ${name}`);
    return at;
  };
  if (last !== undefined) journal.entries.splice(placeOf(last) + 1);
  for (const [tag, sql] of Object.entries(more)) {
    const newest = journal.entries.at(-1);
    if (!newest) throw new Error('there is no migration to come after');
    journal.entries.push({ ...newest, idx: newest.idx + 1, when: newest.when + 1, tag });
    await writeFile(join(folder.path, `${tag}.sql`), sql);
  }
  await writeFile(file, JSON.stringify(journal));
  return {
    path: folder.path,
    tags: journal.entries.map(({ tag }) => tag),
    [Symbol.asyncDispose]: () => folder.remove(),
  };
}
