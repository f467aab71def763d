import { describe, expect, it } from 'vitest';
import { groupReasons, rejectionCode } from '../../src/domain/rejected-rows.ts';

describe('reasons of unusable rows', () => {
  it('are equal if they differ only in the row’s names, values and positions', () => {
    const rows = [
      {
        key: 'a@x',
        name: 'a',
        regionCode: 'x',
        reason: 'servers.a.prices[0] expected number; it is "1; 2"; x',
      },
      { key: 'b@x', name: 'b', regionCode: 'x', reason: 'servers.b.prices[7] expected number; it is 5; x' },
      { key: 'y', regionCode: 'y', code: 'unread_region' as const, reason: '/zones/y/servers answered 404' },
      { key: 'a@z', name: 'a', regionCode: 'z', code: 'duplicate' as const, reason: 'reported 2 times' },
      { key: 'b@z', name: 'b', regionCode: 'z', code: 'duplicate' as const, reason: 'reported 3 times' },
      { key: 'a@w', name: 'a', regionCode: 'w', code: 'duplicate' as const, reason: 'reported 4 times' },
    ];
    expect(groupReasons(rows)).toEqual([
      {
        code: 'duplicate',
        reason: expect.stringContaining('more than once'),
        count: 3,
        examples: ['a@z', 'b@z', 'a@w'],
      },
      {
        code: 'invalid',
        reason: 'servers.….prices[] expected number; …',
        count: 2,
        examples: ['a@x', 'b@x'],
      },
      { code: 'unread_region', reason: '/zones/…/servers answered 404', count: 1, examples: ['y'] },
    ]);
  });

  it('keep the organization that is missing: it is part of the remedy', () => {
    const reason = 'organization "o" does not exist; create it with: fleetbook org create o';
    expect(groupReasons([{ key: 'k', organization: 'o', code: 'unknown_organization', reason }])).toEqual([
      { code: 'unknown_organization', reason, count: 1, examples: ['o/k'] },
    ]);
  });

  it('have a separate kind for a missing rule of an operator', () => {
    expect(rejectionCode({ key: 'k', reason: 'machine is missing', waits: true })).toBe('incomplete');
    expect(rejectionCode({ key: 'k', reason: 'ncpus is missing' })).toBe('invalid');
  });
});
