/** The chart as Helm treats it: value sets, wrong values, the package. Real tools check them. */
import { spawnSync } from 'node:child_process';
import { mkdtempDisposableSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { inPackage, VERSION } from '../../src/config/package.ts';
import { findProgram } from '../../src/processes/find-program.ts';
import { HELM, KUBECONFORM, needs } from '../support/needs.ts';
import {
  containerOf,
  FOLDER,
  helm,
  KUBERNETES,
  type KubernetesObject,
  objects,
  type PodSpec,
  podOf,
  rendered,
  runHelm,
  setFile,
  VALUE_SETS,
} from './chart-support.ts';
import { SCHEMA_FOLDER } from './programs/kubernetes-schemas.ts';

const kubeconform = findProgram('kubeconform');
const hasHelm = needs(helm !== undefined, HELM);
const hasBoth = needs(helm !== undefined && kubeconform !== undefined, KUBECONFORM);

const pods = (all: readonly KubernetesObject[]) => all.flatMap((each) => podOf(each) ?? []);

function conform(text: string): { status: number | null; output: string } {
  const schemas = `${inPackage(SCHEMA_FOLDER)}/{{.ResourceKind}}{{.KindSuffix}}.json`;
  const { status, stdout, stderr } = spawnSync(
    kubeconform ?? '',
    ['-strict', '-summary', '-verbose', '-schema-location', schemas],
    { input: text, encoding: 'utf8' },
  );
  return { status, output: stdout + stderr };
}

// One test for all sets: each skipped test is a line of the summary.
describe('every value set', () => {
  it('passes helm lint --strict', hasHelm, () => {
    for (const set of VALUE_SETS) {
      const { status, stdout, stderr } = runHelm('lint', '--strict', FOLDER, '--values', setFile(set));
      expect(status, `${set}: ${stdout}${stderr}`).toBe(0);
    }
  });

  it('renders valid objects at the installation and at an upgrade', hasBoth, () => {
    for (const set of VALUE_SETS) {
      for (const args of [[], ['--is-upgrade']]) {
        const { status, output } = conform(rendered(set, ...args));
        expect(status, `${set} ${args}: ${output}`).toBe(0);
        expect(output).toMatch(/Invalid: 0, Errors: 0, Skipped: 0/);
      }
    }
  });

  it('restricts every container, and limits its memory', hasHelm, () => {
    for (const set of VALUE_SETS) {
      const all = pods(objects(set));
      expect(all.length).toBeGreaterThanOrEqual(2);
      for (const pod of all) checkRestrictions(set, pod);
    }
  });

  it('puts no secret into a ConfigMap or a plain variable', hasHelm, () => {
    const isSecret = /:\/\/[^/\s"]*:[^/\s"]*@|fb_|fbo_|whsec_/;
    const isName = /TOKEN$|PASSWORD$|SECRET$|DATABASE_URL$|REDIS_URL$/;
    for (const set of VALUE_SETS) {
      const all = objects(set);
      for (const { data } of all.filter(({ kind }) => kind === 'ConfigMap'))
        for (const text of Object.values(data ?? {})) expect(text, set).not.toMatch(isSecret);
      const variables = pods(all).flatMap(({ containers }) => containers.flatMap(({ env }) => env));
      expect(variables.filter(({ name }) => isName.test(name))).not.toEqual([]);
      for (const { name, value } of variables)
        if (isName.test(name) && value !== undefined)
          expect(value, `${set} ${name}`).toMatch(/^postgres:\/\/\$\(\w+\):\$\(\w+\)@/);
    }
  });
});

function checkRestrictions(set: string, pod: PodSpec): void {
  const { securityContext, containers, volumes, serviceAccountName } = pod;
  const restricted = { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } };
  // The servers of a trial have the users of their images.
  const user = serviceAccountName === undefined ? {} : { runAsUser: 1000, runAsGroup: 1000 };
  expect(securityContext, set).toMatchObject({ ...restricted, ...user });
  for (const container of containers) {
    expect(container.securityContext, set).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(container.resources, set).toMatchObject({
      requests: { cpu: expect.anything(), memory: expect.any(String) },
      limits: { memory: expect.any(String) },
    });
    expect(container.volumeMounts, set).toContainEqual({ name: 'tmp', mountPath: '/tmp' });
  }
  for (const { emptyDir } of volumes) if (emptyDir) expect(emptyDir.sizeLimit, set).toMatch(/^\d+[MG]i$/);
}

it(
  'each component gets only the secrets that it needs, and its own ones replace the common ones',
  hasHelm,
  () => {
    const secretsIn = (set: string) => {
      const all = objects(set, '--is-upgrade');
      const of = (kind: string, component: string) =>
        Object.fromEntries(
          containerOf(all, kind, `fleetbook-${component}`).env.flatMap(({ name, valueFrom }) =>
            valueFrom ? [[name, `${valueFrom.secretKeyRef.name}/${valueFrom.secretKeyRef.key}`]] : [],
          ),
        );
      return [of('Deployment', 'readers'), of('Deployment', 'workers'), of('Job', 'migration')];
    };
    expect(secretsIn('pooler-and-sentinels')).toEqual([
      {
        DATABASE_URL: 'fleetbook-api/pooler',
        READER_DATABASE_URL: 'fleetbook-api/replica',
        CACHE_REDIS_URL: 'fleetbook-api/cache',
      },
      {
        DATABASE_URL: 'fleetbook-jobs/pooler',
        DIRECT_DATABASE_URL: 'fleetbook-jobs/direct',
        QUEUE_REDIS_URL: 'fleetbook-jobs/queue',
        CACHE_REDIS_URL: 'fleetbook-jobs/cache',
      },
      { DATABASE_URL: 'fleetbook-owner/pooler', DIRECT_DATABASE_URL: 'fleetbook-owner/direct' },
    ]);
    const [readers, workers, migration] = secretsIn('sources');
    expect(Object.keys(readers ?? {})).toEqual(['DATABASE_URL', 'REDIS_URL']);
    expect(Object.keys(workers ?? {}).sort()).toEqual([
      'ALERT_WEBHOOK_SECRET',
      'ALERT_WEBHOOK_URL',
      'DATABASE_URL',
      'REDIS_URL',
    ]);
    expect(Object.keys(migration ?? {})).toEqual(['DATABASE_URL']);
    const [trialReaders] = secretsIn('trial');
    expect(Object.keys(trialReaders ?? {})).toEqual(['DATABASE_URL', 'CACHE_REDIS_URL']);
  },
);

it('the operators’ port admits no pod that operatorsFrom does not name', hasHelm, () => {
  const ports = (...args: string[]) =>
    objects('external', '--set', 'secretSettings.OPS_TOKEN.name=fleetbook', ...args)
      .filter(({ kind }) => kind === 'NetworkPolicy')
      .flatMap(({ spec }) => (spec.ingress ?? []) as { ports: { port: number }[]; _from?: unknown[] }[])
      .flatMap((rule) => rule.ports.map(({ port }) => [port, rule._from?.length ?? 'all']));
  expect(ports()).toEqual([[3000, 'all']]);
  expect(ports('--set', 'networkPolicy.operatorsFrom[0].podSelector.matchLabels.app=prometheus')).toEqual([
    [3000, 'all'],
    [3001, 1],
    [3001, 1],
  ]);
});

it('kubeconform refuses an unknown field and an unknown kind', hasBoth, () => {
  const text = rendered('external');
  expect(conform(text.replace('automountServiceAccountToken', 'automountToken')).status).toBe(1);
  expect(conform(`${text}\n---\napiVersion: v1\nkind: Pod\nmetadata: { name: a }\n`).status).toBe(1);
});

it('a packaged chart renders the same, without the value sets', hasHelm, () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'fleetbook-chart-'));
  expect(runHelm('package', FOLDER, '--destination', folder.path)).toMatchObject({ status: 0 });
  const [archive = ''] = readdirSync(folder.path);
  expect(archive).toBe(`fleetbook-${VERSION}.tgz`);
  const values = ['--namespace', 'shop', '--values', setFile('monitoring')];
  const packaged = runHelm('template', 'fleetbook', join(folder.path, archive), ...KUBERNETES, ...values);
  expect(packaged).toMatchObject({ status: 0, stdout: rendered('monitoring') });
  const files = spawnSync('tar', ['-tzf', join(folder.path, archive)], { encoding: 'utf8' }).stdout;
  expect(files).toContain('fleetbook/files/alerts.yml');
  expect(files).not.toContain('fleetbook/ci/');
});

const WRONG: readonly (readonly [set: string, value: string, problem: RegExp])[] = [
  ['external', 'readers.replicas=many', /readers.replicas.*want integer/s],
  ['external', 'settings.MEMRY_LIMIT=1', /settings.*MEMRY_LIMIT.*not allowed/s],
  ['external', 'settings.OPS_TOKEN=x', /settings.*OPS_TOKEN.*not allowed/s],
  ['external', 'database.mode=bundled', /database.mode.*trial/s],
  ['external', 'image.repository=', /image.repository is empty; set it/],
  ['trial', 'database.mode=external', /secretSettings.DATABASE_URL is missing; set it/],
  ['external', 'database.mode=trial', /remove secretSettings.DATABASE_URL/],
  ['trial', 'redis.mode=external', /CACHE_REDIS_URL are missing; set both/],
  ['external', 'redis.mode=trial', /remove them from secretSettings/],
  [
    'external',
    'monitoring.serviceMonitor.enabled=true',
    /operators' port is closed; set secretSettings.OPS_TOKEN/,
  ],
  ['ingress', 'networkPolicy.operatorsFrom=null', /operatorsFrom admits no pod.*name the namespace/],
  ['external', 'ingress.enabled=true', /ingress.hosts is empty; name the hosts/],
  ['external', 'httpRoute.enabled=true', /httpRoute.parentRefs is empty; name the Gateway/],
  ['external', 'readers.autoscaling.minReplicas=20', /raise maxReplicas/],
  [
    'external',
    'settings.MEMORY_LIMIT=600000000',
    /readers.resources.limits.memory is 640Mi, less than.*728000000/,
  ],
  ['sources', 'sources.existingSecret=a', /sources names more than one file/],
];

it('a wrong value stops the installation and is named with its remedy', hasHelm, () => {
  for (const [set, value, problem] of WRONG) {
    const given = ['--values', setFile(set), '--set', value];
    const { status, stderr } = runHelm('template', 'a', FOLDER, ...KUBERNETES, ...given);
    expect(status, value).toBe(1);
    expect(stderr, value).toMatch(problem);
  }
});

it('an older Kubernetes is refused', hasHelm, () => {
  const older = ['--kube-version', '1.29.9', '--values', setFile('external')];
  expect(runHelm('template', 'a', FOLDER, ...older).stderr).toContain('requires kubeVersion: >=1.30.0-0');
});
