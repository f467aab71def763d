/** The Helm chart, its value sets, and the objects that Helm renders. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { loadAllYaml } from '@kubernetes/client-node';
import { CHART } from '../../docs/generate/chart.ts';
import { inPackage } from '../../src/config/package.ts';
import { findProgram } from '../../src/processes/find-program.ts';

export const helm = findProgram('helm');
export const FOLDER = inPackage(CHART);

export const VALUE_SETS = readdirSync(`${FOLDER}/ci`).map((file) => file.replace('.yaml', ''));
export const setFile = (set: string): string => `${FOLDER}/ci/${set}.yaml`;
export const inChart = (file: string): string => readFileSync(`${FOLDER}/${file}`, 'utf8');

interface KeyOfSecret {
  readonly name: string;
  readonly key: string;
}
export interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: KeyOfSecret };
}
interface Probe {
  readonly httpGet?: { readonly path: string; readonly port: string };
  readonly periodSeconds: number;
}
export interface Container {
  readonly name: string;
  readonly image: string;
  readonly args?: readonly string[];
  readonly env: readonly Variable[];
  readonly envFrom?: readonly { readonly secretRef: { readonly name: string } }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly resources: Readonly<Record<'requests' | 'limits', Readonly<Record<string, unknown>>>>;
  readonly securityContext: unknown;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly startupProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly lifecycle?: unknown;
}
export interface PodSpec {
  readonly containers: readonly Container[];
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly automountServiceAccountToken: boolean;
  readonly serviceAccountName?: string;
  readonly terminationGracePeriodSeconds?: number;
  readonly volumes: readonly { readonly name: string; readonly emptyDir?: { readonly sizeLimit: string } }[];
  readonly topologySpreadConstraints?: readonly unknown[];
}
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  // Tests name the fields that they check.
  // biome-ignore lint/suspicious/noExplicitAny: objects of every kind
  readonly spec: any;
  readonly data?: Readonly<Record<string, string>>;
  readonly stringData?: Readonly<Record<string, string>>;
}

export function runHelm(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(helm ?? '', [...args], { encoding: 'utf8' });
  return { status, stdout, stderr };
}

/** A helm of `go install` assumes a release of Kubernetes that is too old. */
export const KUBERNETES = ['--kube-version', '1.30.0'];

/** Returns the rendered text. @param args further arguments, such as `--is-upgrade` */
export function rendered(set: string, ...args: readonly string[]): string {
  const fixed = [
    'template',
    'fleetbook',
    FOLDER,
    ...KUBERNETES,
    '--namespace',
    'shop',
    '--values',
    setFile(set),
  ];
  const { status, stdout, stderr } = runHelm(...fixed, ...args);
  if (status !== 0) throw new Error(`helm template of ${set}: ${stderr}`);
  return stdout;
}

export function objects(set: string, ...args: readonly string[]): readonly KubernetesObject[] {
  return (loadAllYaml(rendered(set, ...args)) as (KubernetesObject | null)[]).filter((each) => each !== null);
}

/** Returns the object. @throws Error that lists the others if it is missing */
export function objectOf(all: readonly KubernetesObject[], kind: string, name: string): KubernetesObject {
  const ofKind = all.filter((each) => each.kind === kind);
  const found = ofKind.find(({ metadata }) => metadata.name === name);
  if (!found)
    throw new Error(`no ${kind} ${name}, only ${ofKind.map(({ metadata }) => metadata.name).join(', ')}`);
  return found;
}

export const podOf = ({ spec }: KubernetesObject): PodSpec | undefined => spec?.template?.spec;

/** Returns the only container of a Deployment or Job. */
export function containerOf(all: readonly KubernetesObject[], kind: string, name: string): Container {
  const [container] = podOf(objectOf(all, kind, name))?.containers ?? [];
  if (!container) throw new Error(`${kind} ${name} has no container`);
  return container;
}

/** Returns the environment of a container. @param secrets values by the name and key of their Secret, `name/key` */
export function environmentOf(
  { env, envFrom = [] }: Container,
  secrets: Readonly<Record<string, string>>,
): Record<string, string> {
  const result: Record<string, string> = {};
  for (const { secretRef } of envFrom)
    for (const [path, value] of Object.entries(secrets))
      if (path.startsWith(`${secretRef.name}/`)) result[path.slice(secretRef.name.length + 1)] = value;
  for (const { name, value, valueFrom } of env) {
    const from = valueFrom && `${valueFrom.secretKeyRef.name}/${valueFrom.secretKeyRef.key}`;
    const found = from === undefined ? value : secrets[from];
    if (found === undefined) throw new Error(`${name} needs ${from ?? 'a value'}`);
    result[name] = found.replaceAll(/\$\((\w+)\)/g, (text, other) => result[other] ?? text);
  }
  return result;
}
