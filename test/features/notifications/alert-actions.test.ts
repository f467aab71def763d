import { describe, expect, it } from 'vitest';
import { sourceOfAlert } from '../../../src/domain/alert.ts';
import { actionOf } from '../../../src/features/notifications/alert-messages.ts';
import { ALERT_KINDS } from '../../../src/features/notifications/rules.ts';

const OF_FLEETBOOK = ['publication_behind', 'cache_differs'];
const DETAILS = { batch: 7, run: 12, machine: 9, name: 'cx11' };

describe('an alert', () => {
  it.each(ALERT_KINDS.filter((kind) => !OF_FLEETBOOK.includes(kind) && kind !== 'version_ending'))(
    'of the kind %s links to the page that solves it, and names the command',
    (kind) => {
      const alert = { kind, subject: 'hetzner/fsn1' };
      const { path, command } = actionOf(alert, DETAILS);
      expect(sourceOfAlert(alert)).toBe('hetzner');
      expect(path).toMatch(/^\/(?:sources\/hetzner(?:\?show=\w+)?|held\/7|runs\/12|machines\/9)$/);
      expect(command).toMatch(/^fleetbook \w+ .*(?:hetzner|12|cx11)$/);
    },
  );

  it('about a source that Fleetbook paused links to where a person can run it', () => {
    expect(actionOf({ kind: 'source_paused', subject: 'my source' }, {})).toEqual({
      path: '/sources/my%20source',
      command: 'fleetbook source show my source',
    });
  });

  it('about an ending version is about clusters of any source, and links to their versions', () => {
    const alert = { kind: 'version_ending', subject: 'acme' };
    expect(sourceOfAlert(alert)).toBeUndefined();
    expect(actionOf(alert, {})).toEqual({ path: '/lifecycle', command: 'fleetbook alert list' });
  });

  it.each([...OF_FLEETBOOK, 'export_behind', 'toString'])(
    'of the kind %s is about Fleetbook itself',
    (kind) => {
      const alert = { kind, subject: 'cache' };
      expect([sourceOfAlert(alert), actionOf(alert, {}).path]).toEqual([undefined, '/alerts']);
    },
  );
});
