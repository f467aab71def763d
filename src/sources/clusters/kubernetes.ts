import type { ClusterAdapter, ClusterContext, ClusterItem } from '../source.ts';
import { ApiServer, type RunOf } from './kubernetes/api-server.ts';
import { type Connection, connectionTo } from './kubernetes/connect.ts';
import { TIMING } from './kubernetes/informer.ts';
import { KINDS } from './kubernetes/kinds.ts';
import { listed, nothingInstalled, resolved } from './kubernetes/list.ts';
import { Options, readSettings } from './kubernetes/options.ts';
import { targetsOf } from './kubernetes/target.ts';
import { watched } from './kubernetes/watch.ts';

export const adapter: ClusterAdapter = {
  id: 'kubernetes',
  options: Options,
  endpoints: KINDS.map(({ apiVersion, plural }) => `/apis/${apiVersion}/${plural}`),
  readsFiles: true,
  credentials: 'bearer',
  schedule: '*/5 * * * *',
  notes: `Reads the custom resources of database operators, and watches them: a change arrives within a second, and the
schedule is a safeguard. The source's URL is one of

- the address of an API server, \`https://…\`, with the source's token as its bearer token;
- the path of a kubeconfig, with any credentials in it: a token, certificates, or a plugin;
- \`https://kubernetes.default.svc\` without a token, inside a pod: the pod's service account.

The credentials must be allowed to \`list\` and \`watch\` these objects, in all namespaces or in those of the option
\`namespaces\`, and to \`get\` the objects that they refer to:

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
  return onRequest ? [`  # If the option kinds names ${id}:`, ...rules] : rules;
}).join('\n')}
\`\`\`

A kind without an installed operator is skipped, and checked again every five minutes during a watch. If no kind is
installed, the source fails and nothing changes. A kind that is installed but that the credentials may not list (403) fails
the source too: allow it, or exclude it by the option \`kinds\`. Every account may read which kinds are installed, unless an
administrator removed that right (\`system:discovery\`). An unusable object is rejected with a reason, and its clusters keep
their last values.

The owner of a cluster is its namespace, or the label in the option \`organizationLabel\`; an object without that label is
rejected. Machine type, region, provider and creator come from an annotation of the object, else from its label, else (type
and region) from the node label that its pods require by a node selector or a node affinity. Cores and memory are rounded up
to whole ones; the size of a volume is exact (\`500Mi\` is 0.48828125 GiB). Both are in GiB if they are written in powers of
1024 (\`Gi\`) or as plain bytes that are whole MiB, else in GB. Machine and disks are those of one instance. The storage
class is the name of the disk type; Kubernetes has no prices.

${KINDS.map(({ notes }) => notes).join('\n\n')}`,

  async *clusters(context) {
    const { server, targets } = opened(context, context);
    const { signal = new AbortController().signal } = context;
    let isAnyInstalled = false;
    for (const target of targets) {
      const found = await listed(server, target, signal);
      isAnyInstalled ||= found !== undefined;
      yield* await resolved(server, found?.objects.values() ?? [], signal);
    }
    if (!isAnyInstalled) throw nothingInstalled(targets);
  },

  async *watch(context): AsyncGenerator<readonly ClusterItem[], void> {
    const { server, targets } = opened(context);
    yield* watched(server, targets, TIMING, context.signal);
  },
};

/** @param run absent for a watch, which has its own backoff */
function opened({ address, options }: ClusterContext, run?: RunOf) {
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
