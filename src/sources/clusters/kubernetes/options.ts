import { z } from 'zod';
import { label, listedNames } from '../../schema/fields.ts';
import { misconfigured } from '../../source.ts';
import { KINDS } from './kinds.ts';

const path = z.string().min(1, { error: 'must be a path' });

const names = z.string().regex(/^[a-z0-9.-]+(\s*,\s*[a-z0-9.-]+)*$/, {
  error: 'must be names separated by commas',
});

const key = z.string().regex(/^([a-z0-9.-]{1,253}\/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/, {
  error: 'must be the key of a label, such as topology.kubernetes.io/region',
});

const known = KINDS.map(({ id }) => id);
const usual = KINDS.filter(({ onRequest }) => !onRequest).map(({ id }) => id);
const onRequest = known.filter((id) => !usual.includes(id));

export const Options = z.strictObject({
  context: label
    .optional()
    .describe(
      "context of the kubeconfig, if the source's URL is the path of one; the current context when absent",
    ),
  caFile: path
    .optional()
    .describe('PEM file of the certificate authority of the API server; the usual authorities when absent'),
  kinds: names
    .refine((text) => [...listedNames(text)].every((id) => known.includes(id)), {
      error: `must be some of ${known.join(', ')}, separated by commas`,
    })
    .optional()
    .describe(`the kinds to read, of ${known.join(', ')}; all except ${onRequest.join(', ')} when absent`),
  namespaces: names.optional().describe('namespaces to read, separated by commas; all when absent'),
  labelSelector: label
    .optional()
    .describe('selects the objects to read, e.g. `fleetbook=yes,tier!=test`; all when absent'),
  organizationLabel: key
    .optional()
    .describe('label with the owner of the cluster; when absent, the namespace is the owner'),
  instanceTypeLabel: key
    .default('node.kubernetes.io/instance-type')
    .describe(
      'annotation or label of the object, or node label that its pods require, with the machine type; `node.kubernetes.io/instance-type` when absent',
    ),
  regionLabel: key
    .default('topology.kubernetes.io/region')
    .describe('the same, with the code of the region; `topology.kubernetes.io/region` when absent'),
  providerLabel: key
    .default('fleetbook/provider')
    .describe('annotation or label of the object with the provider; `fleetbook/provider` when absent'),
  creatorLabel: key
    .default('fleetbook/creator')
    .describe(
      'annotation or label of the object with the name of the creator, first name first; `fleetbook/creator` when absent',
    ),
});

export type Settings = ReturnType<typeof readSettings>;

/** Ignores the options of every source of clusters, which are not the adapter's. */
const Own = z.object(Options.shape);

/** @throws SourceError `misconfigured` for options that the configuration did not check */
export function readSettings(given: unknown) {
  const parsed = Own.safeParse(given ?? {});
  if (!parsed.success) {
    const wrong = parsed.error.issues.map(({ path: at, message }) => `${at.join('.')} ${message}`).join('; ');
    throw misconfigured(`the source's options: ${wrong}`);
  }
  const { kinds, namespaces, context, caFile, labelSelector, ...naming } = parsed.data;
  const wanted = kinds === undefined ? new Set(usual) : listedNames(kinds);
  return {
    ...naming,
    context,
    caFile,
    labelSelector,
    kinds: KINDS.filter(({ id }) => wanted.has(id)),
    // Undefined means all namespaces in one request.
    namespaces: namespaces === undefined ? [undefined] : [...listedNames(namespaces)],
  };
}
