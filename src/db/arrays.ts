/**
 * Arrays of PostgreSQL as text, in both directions. postgres.js would ask each new connection for the types of arrays, and
 * nothing handles the failure of that question: a server that was killed at that moment ended the process.
 */
import type postgres from 'postgres';

type Client = Pick<postgres.Sql, 'options'>;

interface Shared {
  readonly shared: { readonly typeArrayMap: Record<number, number> };
}

/** Type of the elements → type of the array, of what PostgreSQL brings along. */
const ARRAY_TYPES: Readonly<Record<number, number>> = {
  16: 1000,
  17: 1001,
  20: 1016,
  21: 1005,
  23: 1007,
  25: 1009,
  26: 1028,
  114: 199,
  700: 1021,
  701: 1022,
  1042: 1014,
  1043: 1015,
  1082: 1182,
  1083: 1183,
  1114: 1115,
  1184: 1185,
  1186: 1187,
  1700: 1231,
  2950: 2951,
  3802: 3807,
};

/** Has a client read and write arrays by how it reads and writes their elements. */
export function addArrayTypes({ options }: Client): void {
  // Not among its types: by it, postgres.js finds the array's type for a list that is given as a parameter.
  const { typeArrayMap } = (options as unknown as Shared).shared;
  for (const [element, array] of Object.entries(ARRAY_TYPES).map(
    ([key, type]) => [Number(key), type] as const,
  )) {
    typeArrayMap[element] = array;
    options.parsers[array] = (text: string) => parseArray(text, options.parsers[element]);
    options.serializers[array] = (value: unknown) => arrayText(value, options.serializers[element]);
  }
  // Type 0: PostgreSQL has not told yet what it takes a parameter for. See whole-statements.ts.
  options.serializers[0] = anyText;
}

/** What is given, as PostgreSQL reads it for whatever type it finds. */
function anyText(value: unknown): unknown {
  if (Array.isArray(value)) return arrayText(value, anyText);
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return `\\x${Buffer.from(value).toString('hex')}`;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** @throws Error for what is no array */
function parseArray(text: string, parse: ((text: string) => unknown) | undefined): unknown[] {
  // Bounds other than from 1 stand before it: `[0:1]={a,b}`.
  const tokens = [...text.replace(/^[^{]*=/, '').matchAll(TOKEN)];
  let at = 0;
  const list = (): unknown[] => {
    const elements: unknown[] = [];
    for (;;) {
      const [token = '', quoted] = tokens[at++] ?? [];
      if (token === '}') return elements;
      if (token === '{') elements.push(list());
      else if (token === '') throw new Error('PostgreSQL sent an array without an end');
      else if (token !== ',') {
        const word = quoted === undefined ? token : quoted.replaceAll(/\\(.)/gs, '$1');
        elements.push(quoted === undefined && word === 'NULL' ? null : parse ? parse(word) : word);
      }
    }
  };
  at += 1;
  return list();
}

/** A brace, a comma, a quoted element or a plain one. */
const TOKEN = /[{},]|"((?:[^"\\]|\\.)*)"|[^{},"]+/gs;

/** @param value an array; a text is taken as it is */
function arrayText(value: unknown, serialize: ((value: unknown) => unknown) | undefined): unknown {
  if (!Array.isArray(value)) return value;
  const elements = value.map((each) => {
    if (Array.isArray(each)) return arrayText(each, serialize);
    if (each === null) return 'null';
    if (each === undefined) throw new TypeError('an array for PostgreSQL holds undefined');
    const text = String(serialize ? serialize(each) : each);
    return `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
  });
  return `{${elements.join(',')}}`;
}
