import { describe, expect, it } from 'vitest';
import { fixture, type Json } from '../../conformance/catalogue-case.ts';
import { everyObject, without } from '../../conformance/json-changes.ts';
import { CHI, CHI_UID, clusters, having, only, read } from './kubernetes-objects.ts';

const CLUSTERS = '/spec/configuration/clusters';

/** An example of the operator: parts without a name, and an unmounted claim without a size. */
const OPENEBS = fixture('kubernetes/click-house-installation-openebs.json');

describe('a ClickHouseInstallation', () => {
  it('is a cluster with its shards, replicas, machine and disks', () => {
    expect(read(CHI)).toEqual([
      {
        kind: 'cluster',
        cluster: {
          tenant: 'acme',
          key: `${CHI_UID}/main`,
          name: 'events',
          provider: 'AWS',
          region: { code: 'us-east-1' },
          status: 'Active',
          shards: 3,
          replicas: 2,
          user: { firstName: 'John', lastName: 'Doe' },
          machine: { name: 'r5.large', cpu: 2, ram: 16, ramUnit: 'Binary' },
          disks: [
            { type: { name: 'gp3' }, size: 150, unit: 'GiB' },
            { type: {}, size: 10, unit: 'GB' },
          ],
          software: { engine: 'clickhouse', version: '25.8' },
          createdAt: '2026-02-14T10:11:26.000000',
        },
      },
    ]);
  });

  it('is read the same with unknown fields', () => {
    const maps = [
      '/metadata/labels',
      '/metadata/annotations',
      '/spec/templates/podTemplates/0/spec/nodeSelector',
    ];
    expect(read(everyObject(CHI, 'new-field', { a: [1] }, maps))).toEqual(read(CHI));
  });

  it.each<[string, Json, number, number]>([
    ['nothing', {}, 1, 1],
    ['zeros, which the operator ignores', { shardsCount: 0, replicasCount: 0 }, 1, 1],
    ['shards only', { shardsCount: 4 }, 4, 1],
    ['replicas only', { replicasCount: 2 }, 1, 2],
    ['a list of shards', { shards: [{}, {}, {}] }, 3, 1],
    ['fewer listed than counted shards', { shardsCount: 4, shards: [{}, {}] }, 4, 1],
    ['more listed than counted shards', { shardsCount: 1, shards: [{}, {}] }, 2, 1],
    ['shards with separate replicas', { shards: [{ replicasCount: 2 }, { replicas: [{}, {}, {}] }] }, 2, 3],
    ['a list of replicas', { replicas: [{ shards: [{}, {}] }, { shardsCount: 3 }] }, 3, 2],
    ['replicas next to shards, which are ignored', { shards: [{}], replicas: [{}, {}, {}] }, 1, 1],
  ])('has the layout of %s', (_, layout, shards, replicas) => {
    expect(only(having(CHI, `${CLUSTERS}/0/layout`, layout))).toMatchObject({ shards, replicas });
  });

  it('is several clusters, each with a separate key and name', () => {
    const several = having(CHI, CLUSTERS, [{ name: 'a', layout: { shardsCount: 3 } }, { name: 'b' }]);
    expect(clusters(several)).toMatchObject([
      { key: `${CHI_UID}/a`, name: 'events/a', shards: 3 },
      { key: `${CHI_UID}/b`, name: 'events/b', shards: 1 },
    ]);
  });

  it('is the operator’s default cluster if it names none', () => {
    expect(only(without(CHI, '/spec/configuration'))).toMatchObject({
      key: `${CHI_UID}/cluster`,
      name: 'events',
    });
  });

  it('rejects clusters of the same name, and reads the others', () => {
    const items = read(having(CHI, CLUSTERS, [{ name: 'a' }, { name: 'b' }, { name: 'a' }]));
    expect(items).toMatchObject([
      { kind: 'rejected', key: `${CHI_UID}/a`, reason: expect.stringContaining('the same name') },
      { kind: 'cluster', cluster: { key: `${CHI_UID}/b` } },
      { kind: 'rejected', key: `${CHI_UID}/a` },
    ]);
  });

  it.each<[string, Json, string]>([
    ['Active once it is completed', { status: 'Completed' }, 'Active'],
    ['Creating before the operator has processed it', {}, 'Creating'],
    ['Creating before it was first completed', { status: 'InProgress' }, 'Creating'],
    ['the operator’s word during a change', { status: 'InProgress', taskIDsCompleted: ['x'] }, 'InProgress'],
    [
      'the same if only the completed state has it',
      { status: 'InProgress', normalizedCompleted: {} },
      'InProgress',
    ],
    ['Aborted if the operator reports it', { status: 'Aborted' }, 'Aborted'],
    ['Terminating if the operator reports it', { status: 'Terminating' }, 'Terminating'],
    ['an unknown word', { status: 'Paused' }, 'Paused'],
  ])('is %s', (_, status, expected) => {
    expect(only(having(CHI, '/status', status)).status).toBe(expected);
  });

  it.each<[Json, string]>([
    ['yes', 'Stopped'],
    ['Yes', 'Stopped'],
    ['1', 'Stopped'],
    [true, 'Stopped'],
    ['no', 'Active'],
    ['', 'Active'],
    [false, 'Active'],
  ])('with stop: %j is %s', (stop, expected) => {
    expect(only(having(CHI, '/spec/stop', stop)).status).toBe(expected);
  });

  it('is Terminating once it is deleted, stopped or not', () => {
    const deleted = having(CHI, '/metadata/deletionTimestamp', '2026-04-01T00:00:00Z');
    expect(only(having(deleted, '/spec/stop', 'yes')).status).toBe('Terminating');
  });

  it('prefers the templates of a cluster to those of the installation', () => {
    const own = having(CHI, `${CLUSTERS}/0/templates`, {
      podTemplate: 'other',
      dataVolumeClaimTemplate: 'left-over',
    });
    expect(only(own).disks).toEqual([
      { type: {}, size: 1024, unit: 'GiB' },
      { type: {}, size: 10, unit: 'GB' },
    ]);
    expect(only(own)).toMatchObject({ machine: undefined });
  });

  it('has the claims that its container mounts', () => {
    const mounts = [{ name: 'left-over' }, { name: 'config-map' }];
    const mounted = having(CHI, '/spec/templates/podTemplates/0/spec/containers/1/volumeMounts', mounts);
    const bare = without(mounted, '/spec/defaults/templates/dataVolumeClaimTemplate');
    expect(only(without(bare, '/spec/defaults/templates/logVolumeClaimTemplate')).disks).toEqual([
      { type: {}, size: 1024, unit: 'GiB' },
    ]);
  });

  it('has unknown disks if their templates are elsewhere, and no disks if there are no templates', () => {
    expect(only(without(CHI, '/spec/templates/volumeClaimTemplates'))).toMatchObject({ disks: undefined });
    expect(only(without(CHI, '/spec/defaults')).disks).toEqual([]);
  });

  it('uses limits if there are no requests', () => {
    const limits = { limits: { cpu: '4', memory: '16G' } };
    const limited = having(CHI, '/spec/templates/podTemplates/0/spec/containers/1/resources', limits);
    expect(only(limited).machine).toEqual({ name: 'r5.large', cpu: 4, ram: 16, ramUnit: 'Decimal' });
  });

  it.each([
    '/spec/templates/podTemplates/0/spec/containers/1/resources',
    '/spec/templates/podTemplates/0/spec/containers',
  ])('names only the machine type without %s', (pointer) => {
    expect(only(without(CHI, pointer)).machine).toEqual({ name: 'r5.large' });
  });

  it('drops templates and clusters without a name, and unused claims without a size', () => {
    const spec = (OPENEBS as { spec: { configuration: object; templates: object } }).spec;
    expect(only(OPENEBS)).toMatchObject({
      name: 'openebs',
      shards: 2,
      replicas: 3,
      machine: { cpu: 2, ram: 4 },
      disks: [{ type: { name: 'openebs-local' }, size: 10, unit: 'GiB' }],
    });
    // The operator names the first of several unnamed clusters.
    const unnamed = having(OPENEBS, CLUSTERS, [{ layout: { shardsCount: 2 } }]);
    expect(only(unnamed)).toMatchObject({ key: `${CHI_UID}/cluster`, shards: 2 });
    // A used claim must have a size.
    const sizeless = having(OPENEBS, '/spec/templates', {
      ...spec.templates,
      volumeClaimTemplates: [{ name: 'data', spec: { accessModes: ['ReadWriteOnce'] } }],
    });
    expect(read(sizeless)).toEqual([
      expect.objectContaining({
        kind: 'rejected',
        reason: expect.stringContaining('volume claim template data: spec.resources'),
      }),
    ]);
  });

  it('rejects each of its clusters if a quantity is unreadable, and quotes only that quantity', () => {
    const broken = having(
      CHI,
      '/spec/templates/volumeClaimTemplates/0/spec/resources/requests/storage',
      '150 GB',
    );
    const items = read(having(broken, CLUSTERS, [{ name: 'a' }, { name: 'b' }]));
    const reason = (name: string) =>
      `acme/events, cluster ${name}: volume claim template data: spec.resources.requests.storage must be a size above 0 ` +
      'such as 100Gi; it is "150 GB"';
    expect(items).toEqual([
      { kind: 'rejected', key: `${CHI_UID}/a`, reason: reason('a') },
      { kind: 'rejected', key: `${CHI_UID}/b`, reason: reason('b') },
    ]);
  });
});
