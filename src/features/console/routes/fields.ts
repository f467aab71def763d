/** What a route is told to do, read from the fields of its JSON body. */
import { readName } from '../../../domain/organization.ts';
import { BadRequest, reasonOf } from './parameters.ts';

/** A field's text without the space around it; undefined when it is absent or empty. @throws BadRequest for what is no text */
export function fieldOf(body: unknown, name: string): string | undefined {
  const value = anyFieldOf(body, name);
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw new BadRequest(name, 'must be a text');
  return value.trim() === '' ? undefined : value.trim();
}

/** A field of the body, whatever it is. */
export function anyFieldOf(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null ? (body as Record<string, unknown>)[name] : undefined;
}

/** The `reason` of a body; undefined for none. @throws BadRequest for one that cannot be shown on one line */
export function anyReasonOf(body: unknown): string | undefined {
  return fieldOf(body, 'reason') === undefined ? undefined : reasonOf(body);
}

const LONGEST_NAME = 200;

/** A field that holds a name; undefined for none. @throws BadRequest for one that cannot be shown on one line */
export function nameOf(body: unknown, field: string): string | undefined {
  const text = fieldOf(body, field);
  if (text === undefined) return undefined;
  const name = readName(text);
  if (name !== undefined && name.length <= LONGEST_NAME) return name;
  throw new BadRequest(field, `must be one line of at most ${LONGEST_NAME} characters`);
}
