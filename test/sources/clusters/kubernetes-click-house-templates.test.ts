import { describe, expect, it } from 'vitest';
import type { Json } from '../../conformance/catalogue-case.ts';
import { CHI, clusters, having, only } from './kubernetes-objects.ts';

const LAYOUT = '/spec/configuration/clusters/0/layout';
const LARGE = { name: 'r5.4xlarge', cpu: 14, ram: 120, ramUnit: 'Binary' };
const SMALL = { name: 'r5.large', cpu: 2, ram: 16, ramUnit: 'Binary' };
const FAST = [{ type: { name: 'io2' }, size: 500, unit: 'GiB' }];
/** Names of the larger templates below, without logs. */
const LARGER = { podTemplate: 'large', dataVolumeClaimTemplate: 'fast' };
const SPEC = CHI as { spec: { templates: { podTemplates: Json[]; volumeClaimTemplates: Json[] } } };

/** Templates besides those of the example's defaults. */
const TEMPLATES = {
  hostTemplates: [{ name: 'by-host', spec: { templates: LARGER } }, { name: 'without a spec' }],
  podTemplates: [
    ...SPEC.spec.templates.podTemplates,
    {
      name: 'large',
      spec: {
        nodeSelector: { 'node.kubernetes.io/instance-type': 'r5.4xlarge' },
        containers: [{ name: 'clickhouse', resources: { requests: { cpu: '14', memory: '120Gi' } } }],
      },
    },
  ],
  volumeClaimTemplates: [
    ...SPEC.spec.templates.volumeClaimTemplates,
    {
      name: 'fast',
      spec: { storageClassName: 'io2', resources: { requests: { storage: '500Gi' } } },
    },
  ],
};

/** The example with these templates and this layout, and with only the default `usual`. */
function laidOut(layout: Json, usual: Json = {}): Json {
  return having(having(having(CHI, '/spec/templates', TEMPLATES), LAYOUT, layout), '/spec/defaults', {
    templates: usual,
  });
}

const USUAL = { podTemplate: 'clickhouse', dataVolumeClaimTemplate: 'data' };

describe('the templates of a ClickHouseInstallation', () => {
  it.each<[string, Json]>([
    ['its shards', { shards: [{ templates: LARGER }, { templates: LARGER }] }],
    ['the replicas of its shards', { shards: [{ replicas: [{ templates: LARGER }] }] }],
    ['its replicas', { shardsCount: 2, replicas: [{ templates: LARGER }] }],
    ['the shards of its replicas', { replicas: [{ shards: [{ templates: LARGER }] }] }],
    ['a host template', { shards: [{ templates: { hostTemplate: 'by-host' } }] }],
    [
      'several levels, each with a part of them',
      {
        shards: [
          { templates: { podTemplate: 'large' }, replicas: [{ templates: { volumeClaimTemplate: 'fast' } }] },
        ],
      },
    ],
  ])('are those that %s name', (_, layout) => {
    expect(only(laidOut(layout))).toMatchObject({ machine: LARGE, disks: FAST });
  });

  it.each<[string, Json, object]>([
    [
      'a replica before its shard',
      { shards: [{ templates: LARGER, replicas: [{ templates: USUAL }] }] },
      SMALL,
    ],
    ['a shard before the defaults', { shards: [{ templates: LARGER }] }, LARGE],
    [
      'a shard in its replica before a shard with none',
      { shards: [{ replicas: [{ templates: {} }] }], replicas: [{ shards: [{ templates: LARGER }] }] },
      LARGE,
    ],
    [
      'no replica’s if shards are listed',
      { shards: [{ replicas: [{}] }], replicas: [{ templates: LARGER }] },
      SMALL,
    ],
    ['an empty name as none', { shards: [{ templates: { podTemplate: '' } }] }, SMALL],
  ])('count in the operator’s order: %s', (_, layout, machine) => {
    expect(only(laidOut(layout, USUAL)).machine).toEqual(machine);
  });

  it('may come from the cluster before the defaults, and from a shard before the cluster', () => {
    const object = laidOut({ shards: [{ templates: LARGER }] }, USUAL);
    const own = having(object, '/spec/configuration/clusters/0/templates', {
      podTemplate: 'clickhouse',
      logVolumeClaimTemplate: 'logs',
    });
    expect(only(own)).toMatchObject({
      machine: LARGE,
      disks: [...FAST, { type: {}, size: 10, unit: 'GB' }],
    });
  });

  it.each<[string, Json, object]>([
    ['most of its shards', { shardsCount: 3, shards: [{ templates: LARGER }] }, SMALL],
    ['most of its replicas', { replicasCount: 4, replicas: [{ templates: LARGER }, {}] }, SMALL],
    [
      'most of its hosts, and not of its shards',
      { shards: [{ replicasCount: 5, templates: LARGER }, { replicasCount: 1 }, { replicasCount: 1 }] },
      LARGE,
    ],
    ['the first of equally many', { shards: [{ templates: LARGER }, {}] }, LARGE],
    [
      'a million like one',
      { shardsCount: 1_000_000, replicasCount: 3, shards: [{ templates: LARGER }] },
      SMALL,
    ],
  ])('differ: the machine and the disks are those of %s', (_, layout, machine) => {
    const cluster = only(laidOut(layout, USUAL));
    expect(cluster.machine).toEqual(machine);
    expect(cluster.disks).toHaveLength(1);
  });

  it('that differ only by name are equal', () => {
    const twin = { ...(TEMPLATES.podTemplates.at(-1) as object), name: 'twin' };
    const layout = {
      shards: [
        { templates: LARGER },
        { templates: { ...LARGER, podTemplate: 'twin' } },
        { replicasCount: 1 },
      ],
    };
    const object = having(laidOut(layout, USUAL), '/spec/templates', {
      ...TEMPLATES,
      podTemplates: [...TEMPLATES.podTemplates, twin],
    });
    expect(only(object).machine).toEqual(LARGE);
  });
});

describe('the normalized state of a ClickHouseInstallation', () => {
  /** The operator's normalized state: each host is listed, with its templates. */
  const completed = {
    metadata: { name: 'events' },
    spec: {
      defaults: {},
      configuration: {
        clusters: [
          {
            name: 'main',
            layout: {
              shardsCount: 1,
              replicasCount: 2,
              shards: [
                {
                  name: '0',
                  replicasCount: 2,
                  replicas: [
                    { name: '0-0', tcpPort: 9000, templates: LARGER },
                    { name: '0-1', tcpPort: 9000, templates: LARGER },
                  ],
                },
              ],
              replicas: [{ name: '0', shards: [{ name: '0-0', templates: LARGER }] }],
            },
          },
        ],
      },
      templates: TEMPLATES,
    },
  } as const;
  const completedAs = (object: Json, normalizedCompleted: unknown) =>
    having(object, '/status', { status: 'Completed', normalizedCompleted: normalizedCompleted as Json });

  it('has priority over the object’s templates, but its layout has not', () => {
    expect(only(completedAs(CHI, completed))).toMatchObject({
      shards: 3,
      replicas: 2,
      machine: LARGE,
      disks: FAST,
    });
  });

  it('does not cover a cluster that was added later', () => {
    const added = having(CHI, '/spec/configuration/clusters', [{ name: 'main' }, { name: 'new' }]);
    expect(clusters(completedAs(added, completed))).toMatchObject([{ machine: LARGE }, { machine: SMALL }]);
  });

  it.each([{}, 'what', { spec: { configuration: { clusters: 7 } } }, null])(
    'is ignored if it is unreadable: %j',
    (unreadable) => {
      expect(only(completedAs(CHI, unreadable)).machine).toEqual(SMALL);
    },
  );
});
