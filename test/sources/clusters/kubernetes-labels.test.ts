import { describe, expect, it } from 'vitest';
import type { Json } from '../../conformance/catalogue-case.ts';
import { without } from '../../conformance/json-changes.ts';
import { CHI, CHI_UID, having, only, PG, PG_UID, read } from './kubernetes-objects.ts';

describe('labels', () => {
  const labelled = { organizationLabel: 'team' };

  it('may name the organization', () => {
    expect(only(CHI, labelled).tenant).toBe('data-platform');
    expect(only(PG, labelled).tenant).toBe('shop');
  });

  it('are never guessed: an object without the label is rejected', () => {
    for (const [object, key] of [
      [CHI, `${CHI_UID}/main`],
      [PG, PG_UID],
    ] as const) {
      expect(read(without(object, '/metadata/labels'), labelled)).toMatchObject([
        { kind: 'rejected', key, reason: expect.stringContaining('metadata.labels lacks team'), waits: true },
      ]);
    }
  });

  it('have the keys of the options', () => {
    const options = {
      providerLabel: 'team',
      creatorLabel: 'app.kubernetes.io/managed-by',
      regionLabel: 'x/y',
    };
    const cluster = only(CHI, options);
    expect(cluster).toMatchObject({ provider: 'data-platform', user: { firstName: 'argocd', lastName: '' } });
    expect(cluster).toMatchObject({ region: undefined });
  });

  it('have priority over node selectors, and annotations over labels', () => {
    const region = 'topology.kubernetes.io/region';
    const both = having(CHI, '/metadata/labels', { [region]: 'eu-west-1' });
    expect(only(both).region).toEqual({ code: 'eu-west-1' });
    expect(only(having(both, '/metadata/annotations', { [region]: 'eu-west-2' })).region).toEqual({
      code: 'eu-west-2',
    });
  });

  it.each<[string, Json]>([
    [
      'one of several types',
      [{ key: 'node.kubernetes.io/instance-type', operator: 'In', values: ['a', 'b'] }],
    ],
    ['any but one', [{ key: 'node.kubernetes.io/instance-type', operator: 'NotIn', values: ['a'] }]],
  ])('do not come from a node affinity to %s', (_, matchExpressions) => {
    const at = '/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms';
    expect(only(having(PG, at, [{ matchExpressions }])).machine).toEqual({
      cpu: 2,
      ram: 8,
      ramUnit: 'Binary',
    });
  });

  it('do not come from an affinity with different alternatives', () => {
    const at = '/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms';
    const term = (type: string) => ({
      matchExpressions: [{ key: 'node.kubernetes.io/instance-type', operator: 'In', values: [type] }],
    });
    expect(only(having(PG, at, [term('a'), term('b')])).machine).not.toHaveProperty('name');
    expect(only(having(PG, at, [term('a'), term('a')])).machine).toHaveProperty('name', 'a');
  });

  it('are rejected if no answer can contain them', () => {
    const long = having(PG, '/metadata/annotations', { 'fleetbook/provider': 'x'.repeat(300) });
    expect(read(long)).toMatchObject([
      { kind: 'rejected', key: PG_UID, reason: expect.stringContaining('provider') },
    ]);
  });
});

describe('an object', () => {
  it.each(['/metadata/name', '/metadata/namespace', '/metadata/uid', '/metadata/creationTimestamp', '/spec'])(
    'of either kind is rejected without %s, under its best name',
    (pointer) => {
      for (const object of [CHI, PG]) {
        const items = read(without(object, pointer));
        expect(items).toHaveLength(1);
        const where = object === CHI ? /^acme|^\?\/events|^acme\/\?/ : /^globex|^\?\/orders|^globex\/\?/;
        expect(items).toMatchObject([
          { kind: 'rejected', reason: expect.stringContaining(pointer.slice(1).replaceAll('/', '.')) },
        ]);
        expect(items).toMatchObject([{ reason: expect.stringMatching(where) }]);
      }
    },
  );
});
