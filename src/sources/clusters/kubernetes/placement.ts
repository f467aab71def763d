import { z } from 'zod';
import type { DescribedCluster, DescribedDisk } from '../../../domain/cluster.ts';
import { label } from '../../schema/fields.ts';
import { bytes, cores, diskSize, volumeSize, wholeCores, wholeGigabytes } from './quantity.ts';

const Amounts = z.object({ cpu: cores.nullish(), memory: bytes.nullish() }).nullish();

export const Resources = z.object({ requests: Amounts, limits: Amounts }).nullish();

export const Labels = z.record(z.string(), z.string()).nullish();

export const VolumeClaim = z
  .object({
    storageClassName: label.nullish(),
    resources: z.object({ requests: z.object({ storage: volumeSize }) }),
  })
  .transform(({ storageClassName: name, resources }): DescribedDisk => {
    return { type: { name: name ?? undefined }, ...diskSize(resources.requests.storage) };
  });

const Term = z.object({
  matchExpressions: z
    .array(z.object({ key: z.string(), operator: z.string(), values: z.array(z.string()).nullish() }))
    .nullish(),
});

/** The part of a pod's affinity that binds it to nodes. */
export const NodeAffinity = z
  .object({
    requiredDuringSchedulingIgnoredDuringExecution: z.object({ nodeSelectorTerms: z.array(Term) }).nullish(),
  })
  .nullish();

/** Returns the value of a node label that pods require by selector or in every alternative of their affinity. */
export function requiredLabel(
  nodeLabel: string,
  selector: z.infer<typeof Labels>,
  affinity: z.infer<typeof NodeAffinity>,
): string | undefined {
  const selected = selector?.[nodeLabel];
  if (selected !== undefined) return selected;
  const terms = affinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const [first, ...others] = terms.map(({ matchExpressions }) => {
    const found = matchExpressions?.find(({ key, operator }) => key === nodeLabel && operator === 'In');
    return found?.values?.length === 1 ? found.values[0] : undefined;
  });
  return others.every((other) => other === first) ? first : undefined;
}

/** Returns the type that pods require, and the reserved cores and memory. Without requests, Kubernetes reserves the limits. */
export function machineOf(
  type: string | undefined,
  resources: z.infer<typeof Resources>,
): DescribedCluster['machine'] {
  const [cpu, memory] = [
    resources?.requests?.cpu ?? resources?.limits?.cpu,
    resources?.requests?.memory ?? resources?.limits?.memory,
  ];
  const named = type === undefined ? undefined : { name: type };
  if (cpu == null || memory == null) return named;
  const reserved = { cpu: wholeCores(cpu), ...wholeGigabytes(memory) };
  return reserved.cpu === 0 || reserved.ram === 0 ? named : { ...named, ...reserved };
}
