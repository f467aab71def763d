import type { ClusterAdapter, ClusterContext, ClusterItem } from '../source.ts';
import { ApiServer, type RunOf } from './kubernetes/api-server.ts';
import { type Connection, connectionTo } from './kubernetes/connect.ts';
import { TIMING } from './kubernetes/informer.ts';
import { KINDS } from './kubernetes/kinds.ts';
import { listed, nothingInstalled } from './kubernetes/list.ts';
import { Options, readSettings } from './kubernetes/options.ts';
import { resolved } from './kubernetes/references.ts';
import { type Target, targetsOf } from './kubernetes/target.ts';
import { watched } from './kubernetes/watch.ts';

/** The database clusters that operators run in a Kubernetes cluster: one file of `kubernetes/kinds/` for each kind. */
export const adapter: ClusterAdapter = {
  id: 'kubernetes',
  options: Options,
  endpoints: KINDS.map(({ apiVersion, plural }) => `/apis/${apiVersion}/${plural}`),
  readsFiles: true,
  credentials: 'bearer',
  schedule: '*/5 * * * *',
  notes: `Reads the custom resources of database operators, and watches them: a change is seen within a second, and the
schedule only makes sure. The source's URL is one of

- the address of an API server, \`https://…\`, with the source's token as its bearer token;
- the path of a kubeconfig, with whatever credentials that holds: a token, certificates, a plugin that is run;
- \`https://kubernetes.default.svc\` without a token, inside a pod: the pod's own service account.

The credentials must be allowed to \`list\` and \`watch\` these objects, in all namespaces or in those that the option
\`namespaces\` names, and to \`get\` what those refer to:

\`\`\`yaml
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: fleetbook
rules:
${KINDS.flatMap(({ id, apiVersion, plural, refersTo = [], onRequest }) => {
  const rule = (resource: string, verbs: string) =>
    `  - { apiGroups: [${apiVersion.split('/')[0]}], resources: [${resource}], verbs: [${verbs}] }`;
  const rules = [rule(plural, 'list, watch'), ...refersTo.map((resource) => rule(resource, 'get'))];
  return onRequest ? [`  # Where the option kinds names ${id}:`, ...rules] : rules;
}).join('\n')}
\`\`\`

A kind whose operator is not installed is left out, and looked for again every five minutes while the source is watched;
where none is installed the source fails, and nothing is changed. A kind that is installed and that the credentials may
not list (403) fails the source as well: allow it, or leave it out by the option \`kinds\`. Which kinds are installed, an
API server tells every account unless an administrator took that right away (\`system:discovery\`). An object that cannot
be used is left out with its reason, and its clusters keep what they had before.

Whose a cluster is says its namespace, or the label that the option \`organizationLabel\` names; an object without that
label is rejected. Machine type, region, provider and creator are read from an annotation of the object, else from a
label of it, else (type and region) from the node label that its pods are bound to by a node selector or a required node
affinity. Cores and memory are rounded up to whole ones, the size of a volume is exact (\`500Mi\` is 0.48828125 GiB). Both
are in GiB where they are written in powers of 1024 (\`Gi\`) or as plain bytes that are whole MiB, else in GB. Machine and
disks are those of one instance. A storage class is the disk type's name; Kubernetes knows no price.

${KINDS.map(({ notes }) => notes).join('\n\n')}`,

  async *clusters(context) {
    const { server, targets } = opened(context, context);
    const { signal = new AbortController().signal } = context;
    let anything = false;
    for (const target of targets) {
      const found = await listed(server, target, TIMING.answerMs, signal);
      anything ||= found !== undefined;
      yield* await resolved(server, found?.objects.values() ?? [], TIMING.answerMs, signal);
    }
    if (!anything) throw nothingInstalled(targets);
  },

  async *watch(context): AsyncGenerator<readonly ClusterItem[], void> {
    const { server, targets } = opened(context);
    yield* watched(server, targets, TIMING, context.signal);
  },
};

/** @param run none for a watch, which makes its own pauses */
function opened(
  { address, options }: ClusterContext,
  run?: RunOf,
): { server: ApiServer; targets: readonly Target[] } {
  const settings = readSettings(options);
  const { context, caFile } = settings;
  const { url, credentials } = address;
  let used: string | undefined;
  async function connect(): Promise<Connection> {
    used = await credentials.token();
    return connectionTo({ url, token: used, context, caFile });
  }
  return {
    server: new ApiServer(connect, () => used !== undefined && credentials.refused(used), run),
    targets: targetsOf(settings),
  };
}
