import type { Json } from './catalogue-case.ts';

/**
 * Returns a copy with another value at a JSON pointer (`''`: all of it). Throws if the case's pointer does not exist.
 */
export function changed(document: Json, pointer: string, change: (value: Json) => Json): Json {
  if (pointer === '') return change(structuredClone(document));
  return at(document, pointer, (holder, key) => {
    if (Array.isArray(holder)) holder[Number(key)] = change(holder[Number(key)] ?? null);
    else holder[key] = change(holder[key] ?? null);
  });
}

/** Returns a copy without the field at a JSON pointer. */
export function without(document: Json, pointer: string): Json {
  return at(document, pointer, (holder, key) => {
    if (Array.isArray(holder)) holder.splice(Number(key), 1);
    else delete holder[key];
  });
}

/** Returns JSON pointers to the fields of a page outside of the rows, and to the fields of these. */
export function fieldsOutsideRows(document: Json, list: string, at = ''): string[] {
  if (typeof document !== 'object' || document === null || Array.isArray(document)) return [];
  return Object.entries(document).flatMap(([key, value]) => {
    const pointer = `${at}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    return pointer === list ? [] : [pointer, ...fieldsOutsideRows(value, list, pointer)];
  });
}

/**
 * Returns a copy with an additional field in each object, except those at the JSON pointers of `maps` (`*`: any
 * name).
 */
export function everyObject(
  document: Json,
  field: string,
  value: Json,
  maps: readonly string[] = [],
  at = '',
): Json {
  if (Array.isArray(document))
    return document.map((item, index) => everyObject(item, field, value, maps, `${at}/${index}`));
  if (typeof document !== 'object' || document === null) return document;
  const copied = Object.entries(document).map(([key, inner]) => [
    key,
    everyObject(inner, field, value, maps, `${at}/${key}`),
  ]);
  const copy = Object.fromEntries(copied) as { [key: string]: Json };
  return maps.some((pattern) => fits(pattern, at)) ? copy : { ...copy, [field]: value };
}

/** Returns the rows of an array or a map in reverse order. */
export function reversed(rows: Json): Json {
  if (Array.isArray(rows)) return rows.toReversed();
  return Object.fromEntries(Object.entries(rows ?? {}).reverse()) as { [key: string]: Json };
}

/** Returns the rows of an array or a map without the first. */
export function withoutFirst(rows: Json): Json {
  if (Array.isArray(rows)) return rows.slice(1);
  return Object.fromEntries(Object.entries(rows ?? {}).slice(1)) as { [key: string]: Json };
}

function fits(pattern: string, pointer: string): boolean {
  const [wanted, found] = [pattern.split('/'), pointer.split('/')];
  return (
    wanted.length === found.length && wanted.every((part, index) => part === '*' || part === found[index])
  );
}

function at(
  document: Json,
  pointer: string,
  act: (holder: Json[] | { [key: string]: Json }, key: string) => void,
): Json {
  const copy = structuredClone(document);
  const keys = pointer.split('/').slice(1).map(unescaped);
  const last = keys.pop();
  let holder: Json | undefined = copy;
  for (const key of keys) {
    if (typeof holder !== 'object' || holder === null) break;
    holder = Array.isArray(holder) ? holder[Number(key)] : holder[key];
  }
  if (typeof holder !== 'object' || holder === null || last === undefined || !Object.hasOwn(holder, last)) {
    throw new Error(`the fixture has nothing at ${pointer}`);
  }
  act(holder, last);
  return copy;
}

/** A slash inside a key is `~1`, a tilde `~0` (RFC 6901). */
function unescaped(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~');
}
