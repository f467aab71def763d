/** Facts of the product in the objects that Helm renders. */
import { describe, expect, it } from 'vitest';
import { alertRules } from '../ops/alert-rules.ts';
import { HELM, needs } from '../support/needs.ts';
import { containerOf, helm, inChart, objectOf, objects, podOf } from './chart-support.ts';

const hasHelm = needs(helm !== undefined, HELM);

const COMPONENTS = ['readers', 'workers'] as const;

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

  it('of a database of the release is a Job, and a hook later', hasHelm, () => {
    for (const set of ['trial', 'cloudnativepg']) {
      const hook = (...args: string[]) =>
        objectOf(objects(set, ...args), 'Job', 'fleetbook-migration').metadata.annotations?.['helm.sh/hook'];
      expect([set, hook(), hook('--is-upgrade')]).toEqual([set, undefined, 'pre-install,pre-upgrade']);
    }
  });

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
