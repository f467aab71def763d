/** Statements are Drizzle's. The few files that send a statement of postgres.js itself are listed here, each with its reason. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'rolldown/utils';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

const SENDERS: Readonly<Record<string, string>> = {
  'src/db/connection/client.ts': 'the client itself',
  'src/db/connection/copy.ts': 'COPY',
  'src/db/connection/server-problem.ts': 'the process id of a connection is in the driver’s result',
  'src/db/lineage.ts': 'each reader reads it every second',
  'src/dev/postgres.ts': 'it sets up a server',
  'src/features/exports/make.ts': 'rows one by one',
  'src/snapshot/document/load.ts': 'the prepared reads of readers and publishers',
  'src/snapshot/read/postgres-reads.ts': 'the probe of the same connections',
};

type Node = Readonly<Record<string, unknown>>;
const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null;

/** Returns the lines with a tagged or `unsafe` statement that is not Drizzle's. */
function sentBy(path: string, code: string): number[] {
  const { program, errors } = parseSync(path, code);
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`);
  const isDrizzle = /^import \{[^}]*\bsql\b[^}]*\} from '[^']*\/drizzle\.ts';/m.test(code);
  const lines: number[] = [];
  /** @param hidden names that a parameter or a variable has in this scope */
  const visit = (node: unknown, hidden: ReadonlySet<string>): void => {
    if (!isNode(node)) return;
    const names = new Set([...hidden, ...namesOf(node.params), ...declaredIn(node.body)]);
    const { tag, callee } = node;
    const isUnsafe = isNode(callee) && isNode(callee.property) && callee.property.name === 'unsafe';
    const isSent = node.type === 'TaggedTemplateExpression' && isNode(tag) && !isHarmless(tag, names);
    if (isSent || isUnsafe) lines.push(code.slice(0, Number(node.start)).split('\n').length);
    for (const value of Object.values(node)) visit(value, names);
  };
  const isHarmless = ({ type, name, object }: Node, names: ReadonlySet<string>) =>
    type === 'Identifier'
      ? name === 'sql' && isDrizzle && !names.has('sql')
      : isNode(object) && object.name === 'String';
  visit(program, new Set());
  return lines;
}

/** Returns the names that a parameter or a variable binds, also within a pattern. */
function namesOf(pattern: unknown): string[] {
  if (!isNode(pattern)) return [];
  const { type, name, left, value } = pattern;
  if (type === 'Identifier') return [String(name)];
  if (type === 'AssignmentPattern') return namesOf(left);
  if (type === 'Property') return namesOf(value);
  return Object.values(pattern).flatMap(namesOf);
}

function declaredIn(body: unknown): string[] {
  const statements = isNode(body) && Array.isArray(body.body) ? body.body : body;
  if (!Array.isArray(statements)) return [];
  return statements.flatMap((each) =>
    isNode(each) && Array.isArray(each.declarations)
      ? each.declarations.flatMap(({ id }) => namesOf(id))
      : [],
  );
}

describe('a statement of postgres.js', () => {
  const door = './drizzle.ts';
  const drizzle = `import { sql } from '${door}';\n`;

  it.each([
    ['of a client', 'export const a = (client: Client) => client`select 1`;\n'],
    ['of a client named sql', 'export const a = (sql: Sql) => sql<Row[]>`select 1`;\n'],
    [
      'that hides Drizzle’s tag',
      `${drizzle}export const a = ({ sql }: Store) => [1].map(() => sql\`select 1\`);\n`,
    ],
    [
      'of a variable',
      `${drizzle}export function a(store: Store) {\n  const { sql } = store;\n  return sql\`select 1\`;\n}\n`,
    ],
    ['of a member', `${drizzle}export const a = (store: Store) => store.db.$client\`select 1\`;\n`],
    ['without a template', 'export const a = (client: Client) => client.unsafe("select 1");\n'],
  ])('is found: %s', (_, code) => {
    expect(sentBy('a.ts', code)).toHaveLength(1);
  });

  it.each([
    [
      'of Drizzle',
      `${drizzle}export const a = (db: Database) => db.execute(sql\`select \${sql.raw('1')}\`);\n`,
    ],
    ['as a default', `${drizzle}export const a = (more = sql\`\`) => sql\`select 1 \${more}\`;\n`],
    ['of another kind', 'export const a = String.raw`\\d`;\n'],
  ])('is not found in a template %s', (_, code) => {
    expect(sentBy('a.ts', code)).toEqual([]);
  });

  it('is only in files that need one', () => {
    const files = globSync('{src,workers}/**/*.ts', { cwd: ROOT });
    expect(files.length).toBeGreaterThan(400);
    const senders = files.filter((file) => sentBy(file, readFileSync(join(ROOT, file), 'utf8')).length > 0);
    expect(senders.sort()).toEqual(Object.keys(SENDERS).sort());
  });
});
