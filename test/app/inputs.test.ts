/** Commands and the console read the inputs of actions with the same schemas, and name a mistake in the same words. */
import { describe, expect, it } from 'vitest';
import type { z } from 'zod';
import {
  acceptedPrice,
  cancelledRun,
  deletedOrganization,
  newOrganization,
  newToken,
  reasoned,
  renamedPerson,
  rotation,
} from '../../src/app/actions/inputs.ts';
import { readArguments, readId } from '../../src/cli/terminal/options.ts';
import { BadInput } from '../../src/domain/input.ts';
import { idOf, readBody } from '../../src/ops/parameters.ts';

function refusedBy(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    return (error as Error).message;
  }
  return 'accepted';
}

const scopes = ['machines:read'];

describe('an input of an action', () => {
  it.each<[z.ZodType, object, string, string]>([
    [newToken, { scopes: ['write'] }, 'scopes', '"write" is not a scope; use machines:read or clusters:read'],
    [
      newToken,
      { scopes, expires: '2020-01-31' },
      'expires',
      '"2020-01-31" is in the past; give a future time',
    ],
    [newToken, { scopes, name: 'two\nlines' }, 'name', 'must be one line of 1 to 200 characters'],
    [rotation, { grace: 'soon' }, 'grace', '"soon" is not a span; use e.g. 30m, 1h or 7d'],
    [
      acceptedPrice('the list'),
      { machine: 'm', amount: '1e3' },
      'amount',
      '"1e3" is not a price; give the amount that the list shows, e.g. 0.0119',
    ],
    [reasoned, {}, 'reason', 'is missing; give a reason, which the audit log stores'],
    [renamedPerson('delete it'), {}, 'firstName', 'and the last name are both empty; delete it'],
  ])(
    '%# has one message for a mistake, after the name of the option or field',
    (schema, given, field, problem) => {
      expect(refusedBy(() => readBody(schema, given))).toBe(`${field} ${problem}`);
      const option = field === 'firstName' ? '--first-name' : `--${field}`;
      expect(refusedBy(() => readArguments(schema, given))).toBe(`${option} ${problem}`);
      expect(refusedBy(() => readArguments(schema, given, { [field]: 'it' }))).toBe(`it ${problem}`);
    },
  );

  it('is a failure that names its field', () => {
    expect(() => readBody(cancelledRun, { reason: 'it hangs' })).toThrow(
      new BadInput('run', 'must be the number of the run'),
    );
    expect(() => readBody(deletedOrganization('acme'), { reason: 'gone', slug: 'other' })).toThrow(BadInput);
  });

  it('that is the id of a row has the same form in a command and in a path', () => {
    for (const text of ['0', '-1', '01', '1.5', '2147483648', 'acme', '']) {
      expect(refusedBy(() => readId(text, 'user id', '`fleetbook user list` shows'))).toBe(
        `"${text}" is not a user id; give the number that \`fleetbook user list\` shows`,
      );
      expect(refusedBy(() => idOf({ id: text }, 'id', 'person'))).toBe(`there is no person ${text}`);
    }
    expect([readId('2147483647', 'user id', ''), idOf({ id: '7' }, 'id', 'person')]).toEqual([2147483647, 7]);
  });

  it('has no value for a blank text of a form, and a wrong one for a blank option', () => {
    expect(readBody(newOrganization, { slug: 'acme', name: ' ', more: 1 })).toEqual({
      slug: 'acme',
      name: 'acme',
    });
    // An empty shell variable must not make a token without an expiry.
    expect(refusedBy(() => readArguments(newToken, { scopes, expires: '' }))).toMatch(
      /^--expires "" is not a time/,
    );
  });

  it('has the scopes of a token in one order, and spans in milliseconds', () => {
    expect(readBody(newToken, { scopes: ['clusters:read', 'machines:read'] })).toEqual({
      scopes: ['machines:read', 'clusters:read'],
    });
    expect([{}, { grace: '30m' }].map((given) => readBody(rotation, given))).toEqual([
      { grace: 0 },
      { grace: 1_800_000 },
    ]);
  });
});
