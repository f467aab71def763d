/** The objects that Helm renders from the chart, with the real tools. */
import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { inPackage } from '../../src/config/package.ts';
import { onPath } from '../../src/processes/on-path.ts';
import { alertRules } from '../support/alert-rules.ts';
import { HELM, KUBECONFORM, needs } from '../support/needs.ts';
import {
  containerOf,
  FOLDER,
  helm,
  inChart,
  KUBERNETES,
  type KubernetesObject,
  objectOf,
  objects,
  podOf,
  rendered,
  runHelm,
  setFile,
  VALUE_SETS,
} from './chart-support.ts';
import { SCHEMA_FOLDER } from './programs/kubernetes-schemas.ts';

const kubeconform = onPath('kubeconform');
const hasHelm = needs(helm !== undefined, HELM);
const hasBoth = needs(helm !== undefined && kubeconform !== undefined, KUBECONFORM);

const COMPONENTS = ['readers', 'workers'] as const;
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

describe.each(VALUE_SETS)('the value set %s', (set) => {
  it('passes helm lint --strict', hasHelm, () => {
    const { status, stdout, stderr } = runHelm('lint', '--strict', FOLDER, '--values', setFile(set));
    expect(status, stdout + stderr).toBe(0);
  });

  it.each([['at the installation'], ['at an upgrade', '--is-upgrade']])(
    'renders valid objects %s',
    hasBoth,
    (_, ...args) => {
      const { status, output } = conform(rendered(set, ...args));
      expect(status, output).toBe(0);
      expect(output).toMatch(/Invalid: 0, Errors: 0, Skipped: 0/);
    },
  );

  it('restricts every container, and limits its memory', hasHelm, () => {
    const all = pods(objects(set));
    expect(all.length).toBeGreaterThanOrEqual(2);
    for (const { securityContext, containers, volumes, serviceAccountName } of all) {
      expect(securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      });
      const isOurs = serviceAccountName !== undefined;
      if (isOurs) expect(securityContext).toMatchObject({ runAsUser: 1000, runAsGroup: 1000 });
      for (const container of containers) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        expect(container.resources).toMatchObject({
          requests: { cpu: expect.anything(), memory: expect.any(String) },
          limits: { memory: expect.any(String) },
        });
        expect(container.volumeMounts).toContainEqual({ name: 'tmp', mountPath: '/tmp' });
      }
      for (const { emptyDir } of volumes) if (emptyDir) expect(emptyDir.sizeLimit).toMatch(/^\d+[MG]i$/);
    }
  });

  it('puts no secret into a ConfigMap or a plain variable', hasHelm, () => {
    const all = objects(set);
    for (const { data } of all.filter(({ kind }) => kind === 'ConfigMap'))
      for (const text of Object.values(data ?? {}))
        expect(text).not.toMatch(/:\/\/[^/\s"]*:[^/\s"]*@|fb_|fbo_|whsec_/);
    for (const { env } of pods(all).flatMap(({ containers }) => containers))
      for (const { name, value } of env ?? [])
        if (/TOKEN$|PASSWORD$|SECRET$|DATABASE_URL$|REDIS_URL$/.test(name) && value !== undefined)
          expect([name, value]).toEqual([name, expect.stringMatching(/^postgres:\/\/\$\(\w+\):\$\(\w+\)@/)]);
  });
});

it('kubeconform refuses an unknown field and an unknown kind', hasBoth, () => {
  const text = rendered('external');
  expect(conform(text.replace('automountServiceAccountToken', 'automountToken')).status).toBe(1);
  expect(conform(`${text}\n---\napiVersion: v1\nkind: Pod\nmetadata: { name: a }\n`).status).toBe(1);
});

describe('the migration', () => {
  it('is a hook before the installation and each upgrade, with its network policy', hasHelm, () => {
    for (const kind of ['Job', 'NetworkPolicy']) {
      const { annotations } = objectOf(objects('external'), kind, 'fleetbook-migration').metadata;
      expect(annotations).toMatchObject({
        'helm.sh/hook': 'pre-install,pre-upgrade',
        'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
      });
    }
    const weight = (kind: string) =>
      Number(
        objectOf(objects('external'), kind, 'fleetbook-migration').metadata.annotations?.[
          'helm.sh/hook-weight'
        ],
      );
    expect(weight('NetworkPolicy')).toBeLessThan(weight('Job'));
  });

  it.each(['trial', 'cloudnativepg'])(
    'of a database of the release (%s) is a Job, and a hook later',
    hasHelm,
    (set) => {
      const at = (...args: string[]) =>
        objectOf(objects(set, ...args), 'Job', 'fleetbook-migration').metadata;
      expect(at().annotations?.['helm.sh/hook']).toBeUndefined();
      expect(at('--is-upgrade').annotations?.['helm.sh/hook']).toBe('pre-install,pre-upgrade');
    },
  );

  it(
    'gets the addresses of PostgreSQL alone, needs no account, and keeps the log of a failure',
    hasHelm,
    () => {
      const job = objectOf(objects('pooler-and-sentinels'), 'Job', 'fleetbook-migration');
      const names = podOf(job)?.containers[0]?.env.map(({ name }) => name);
      expect(names?.filter((name) => /URL|TOKEN|SECRET/.test(name))).toEqual([
        'DATABASE_URL',
        'DIRECT_DATABASE_URL',
      ]);
      expect(podOf(job)).toMatchObject({
        serviceAccountName: 'default',
        automountServiceAccountToken: false,
        restartPolicy: 'Never',
      });
      expect(objects('by-hand').some(({ kind }) => kind === 'Job')).toBe(false);
    },
  );
});

describe('readers and workers', () => {
  it('are probed at the endpoints of the product', hasHelm, () => {
    const all = objects('external');
    const paths = (name: string) => {
      const { startupProbe, readinessProbe, livenessProbe, ports } = containerOf(all, 'Deployment', name);
      return [startupProbe, readinessProbe, livenessProbe].map((probe) => [
        probe?.httpGet?.path,
        ports?.find((port) => port.name === probe?.httpGet?.port)?.containerPort,
      ]);
    };
    expect(paths('fleetbook-readers')).toEqual([
      ['/healthz', 3000],
      ['/readyz', 3000],
      ['/healthz', 3000],
    ]);
    expect(paths('fleetbook-workers')).toEqual(Array(3).fill(['/healthz', 3001]));
  });

  it('get time to drain: a reader 5 + 16 s, a worker 20 s and its connections', hasHelm, () => {
    const all = objects('external');
    const grace = (name: string) => podOf(objectOf(all, 'Deployment', name))?.terminationGracePeriodSeconds;
    expect(containerOf(all, 'Deployment', 'fleetbook-readers').lifecycle).toEqual({
      preStop: { sleep: { seconds: 5 } },
    });
    expect(grace('fleetbook-readers')).toBeGreaterThan(5 + 16);
    expect(grace('fleetbook-workers')).toBeGreaterThan(20 + 3 * 3);
  });

  it('are spread, scaled and protected from evictions', hasHelm, () => {
    const all = objects('external');
    for (const component of COMPONENTS) {
      const { spec } = objectOf(all, 'Deployment', `fleetbook-${component}`);
      const keys = spec.template.spec.topologySpreadConstraints.map(
        (each: { topologyKey: string }) => each.topologyKey,
      );
      expect(keys).toEqual(['topology.kubernetes.io/zone', 'kubernetes.io/hostname']);
      const budget = objectOf(all, 'PodDisruptionBudget', `fleetbook-${component}`).spec;
      expect(budget).toMatchObject({ maxUnavailable: 1, selector: spec.selector });
    }
    const scaler = objectOf(all, 'HorizontalPodAutoscaler', 'fleetbook-readers').spec;
    expect(scaler).toMatchObject({ scaleTargetRef: { name: 'fleetbook-readers' }, minReplicas: 2 });
    // A number in the Deployment would undo the scaler's work at each upgrade.
    expect(objectOf(all, 'Deployment', 'fleetbook-readers').spec.replicas).toBeUndefined();
    expect(objectOf(objects('by-hand'), 'Deployment', 'fleetbook-readers').spec.replicas).toBe(1);
  });

  it('give credentials of sources to workers alone', hasHelm, () => {
    const all = objects('sources');
    expect(containerOf(all, 'Deployment', 'fleetbook-readers').envFrom).toBeUndefined();
    expect(containerOf(all, 'Deployment', 'fleetbook-workers').envFrom).toEqual([
      { secretRef: { name: 'fleetbook-hetzner' } },
      { secretRef: { name: 'fleetbook-platform' } },
    ]);
  });

  it('read from the replicas of CloudNativePG', hasHelm, () => {
    const all = objects('cloudnativepg');
    const env = (name: string) =>
      Object.fromEntries(containerOf(all, 'Deployment', name).env.map((each) => [each.name, each]));
    const key = (name: string) => ({ valueFrom: { secretKeyRef: { name: 'fleetbook-db-app', key: name } } });
    expect(env('fleetbook-readers')).toMatchObject({
      DATABASE_URL: key('uri'),
      READER_DATABASE_URL: {
        value: 'postgres://$(REPLICA_USER):$(REPLICA_PASSWORD)@fleetbook-db-ro:5432/fleetbook',
      },
    });
    expect(env('fleetbook-workers')).not.toHaveProperty('READER_DATABASE_URL');
    expect(objectOf(all, 'Cluster', 'fleetbook-db')).toMatchObject({
      metadata: { annotations: { 'helm.sh/resource-policy': 'keep' } },
      spec: {
        bootstrap: { initdb: { database: 'fleetbook', postInitSQL: ['ALTER ROLE fleetbook CREATEROLE'] } },
        backup: { retentionPolicy: '30d' },
      },
    });
  });
});

describe('the operators’ port', () => {
  it('is closed without OPS_TOKEN', hasHelm, () => {
    const all = objects('external');
    expect(all.filter(({ kind }) => kind === 'Service').map(({ metadata }) => metadata.name)).toEqual([
      'fleetbook',
    ]);
    const { env, ports } = containerOf(all, 'Deployment', 'fleetbook-readers');
    expect(env).toContainEqual({ name: 'OPS_HOST', value: '127.0.0.1' });
    expect(ports).toEqual([{ name: 'http', containerPort: 3000 }]);
    expect(JSON.stringify(objectOf(all, 'NetworkPolicy', 'fleetbook-readers').spec.ingress)).not.toContain(
      '3001',
    );
    expect(objectOf(all, 'NetworkPolicy', 'fleetbook-workers').spec).not.toHaveProperty('ingress');
    expect(objectOf(all, 'NetworkPolicy', 'fleetbook-workers').spec.policyTypes).toContain('Ingress');
  });

  it('is open to named peers with OPS_TOKEN, and Prometheus sends it', hasHelm, () => {
    const all = objects('monitoring');
    // The parser's name of `from`.
    const _from = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } }];
    for (const component of COMPONENTS) {
      expect(objectOf(all, 'NetworkPolicy', `fleetbook-${component}`).spec.ingress).toContainEqual({
        ports: [{ port: 3001, protocol: 'TCP' }],
        _from,
      });
      const service = objectOf(all, 'Service', `fleetbook-${component}-operators`);
      const { selector } = objectOf(all, 'ServiceMonitor', 'fleetbook').spec;
      expect(service.metadata.labels).toMatchObject(selector.matchLabels);
    }
    expect(objectOf(all, 'ServiceMonitor', 'fleetbook').spec.endpoints).toEqual([
      expect.objectContaining({
        path: '/metrics',
        authorization: { type: 'Bearer', credentials: { name: 'fleetbook-operators', key: 'token' } },
        relabelings: [{ targetLabel: 'job', replacement: 'fleetbook/shop/fleetbook' }],
      }),
    ]);
  });
});

describe('network policies', () => {
  it('let readers reach their servers, and workers also the sources', hasHelm, () => {
    const portsOf = (set: string, component: string) =>
      objectOf(objects(set), 'NetworkPolicy', `fleetbook-${component}`).spec.egress.flatMap(
        ({ ports }: { ports: { port: number }[] }) => ports.map(({ port }) => port),
      );
    expect(portsOf('external', 'readers')).toEqual([53, 53, 5432, 6379]);
    expect(portsOf('external', 'workers')).toEqual([53, 53, 5432, 6379, 443]);
    expect(portsOf('external', 'migration')).toEqual([53, 53, 5432]);
    expect(portsOf('trial', 'readers')).toEqual([53, 53, 5432, 6379, 6379]);
    expect(portsOf('pooler-and-sentinels', 'workers')).toEqual([53, 53, 5432, 6432, 6379, 26379, 3128]);
    const { egress } = objectOf(objects('external'), 'NetworkPolicy', 'fleetbook-workers').spec;
    expect(egress.at(-1).to[0].ipBlock).toEqual({ cidr: '0.0.0.0/0', except: ['169.254.0.0/16'] });
  });

  it('select the pods that they name', hasHelm, () => {
    const all = objects('trial');
    const labels = all.flatMap(({ spec }) => spec?.template?.metadata?.labels ?? []);
    const policies = all.filter(({ kind }) => kind === 'NetworkPolicy');
    expect(policies).toHaveLength(6);
    const selectors = policies.flatMap(({ spec }) => [
      spec.podSelector.matchLabels,
      ...(spec.egress ?? []).flatMap(({ to = [] }) =>
        to.flatMap((peer: { podSelector?: { matchLabels: object } }) => peer.podSelector?.matchLabels ?? []),
      ),
    ]);
    for (const selector of selectors) expect(labels).toContainEqual(expect.objectContaining(selector));
  });
});

describe('monitoring', () => {
  it('has the rules and the dashboard of docs/monitoring', hasHelm, () => {
    const all = objects('monitoring');
    const { groups } = objectOf(all, 'PrometheusRule', 'fleetbook').spec;
    const rules = groups.flatMap((group: { rules: unknown[] }) => group.rules);
    const docs = 'https://git.example.com/fleetbook/docs/';
    expect(rules).toEqual(
      alertRules().map((rule) => ({
        ...rule,
        annotations: {
          ...rule.annotations,
          runbook_url: rule.annotations.runbook_url.replace(/^docs\//, docs),
        },
      })),
    );
    const { data, metadata } = objectOf(all, 'ConfigMap', 'fleetbook-dashboard');
    expect(JSON.parse(data?.['fleetbook.json'] ?? '')).toEqual(JSON.parse(inChart('files/dashboard.json')));
    expect(metadata.labels).toMatchObject({ grafana_dashboard: '1' });
  });
});

describe('a wrong value stops the installation and is named', () => {
  const problemOf = (set: string, ...args: readonly string[]) => {
    const given = args.flatMap((each) => ['--set', each]);
    const { status, stderr } = runHelm(
      'template',
      'a',
      FOLDER,
      ...KUBERNETES,
      '--values',
      setFile(set),
      ...given,
    );
    expect(status).toBe(1);
    return stderr;
  };

  it.each([
    ['external', ['readers.replicas=many'], /readers.replicas.*want integer/s],
    ['external', ['settings.MEMRY_LIMIT=1'], /settings.*MEMRY_LIMIT.*not allowed/s],
    ['external', ['settings.OPS_TOKEN=x'], /settings.*OPS_TOKEN.*not allowed/s],
    ['external', ['database.mode=bundled'], /database.mode.*trial/s],
    ['external', ['image.repository='], /image.repository is empty; set it/],
    ['trial', ['database.mode=external'], /secretSettings.DATABASE_URL is missing; set it/],
    ['external', ['database.mode=trial'], /remove secretSettings.DATABASE_URL/],
    ['trial', ['redis.mode=external'], /CACHE_REDIS_URL are missing; set both/],
    ['external', ['redis.mode=trial'], /remove them from secretSettings/],
    [
      'external',
      ['monitoring.serviceMonitor.enabled=true'],
      /operators' port is closed; set secretSettings.OPS_TOKEN/,
    ],
    ['external', ['ingress.enabled=true'], /ingress.hosts is empty; name the hosts/],
    ['external', ['httpRoute.enabled=true'], /httpRoute.parentRefs is empty; name the Gateway/],
    ['external', ['readers.autoscaling.minReplicas=20'], /raise maxReplicas/],
    [
      'external',
      ['settings.MEMORY_LIMIT=600000000'],
      /readers.resources.limits.memory is 640Mi, less than.*728000000/,
    ],
    ['sources', ['sources.existingSecret=a'], /sources names more than one file/],
  ])('%s with %s', hasHelm, (set, args, problem) => {
    expect(problemOf(set, ...args)).toMatch(problem);
  });
});
