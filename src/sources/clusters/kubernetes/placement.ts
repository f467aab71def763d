import { z } from 'zod';
import type { DescribedCluster } from '../../../domain/cluster.ts';
import { bytes, cores, wholeCores, wholeGigabytes } from './quantity.ts';

const Amounts = z.object({ cpu: cores.nullish(), memory: bytes.nullish() }).nullish();

/** What a container asks for. */
export const Resources = z.object({ requests: Amounts, limits: Amounts }).nullish();

export const Labels = z.record(z.string(), z.string()).nullish();

const Term = z.object({
  matchExpressions: z
    .array(z.object({ key: z.string(), operator: z.string(), values: z.array(z.string()).nullish() }))
    .nullish(),
});

/** What of a pod's affinity decides on which nodes it may run. */
export const NodeAffinity = z
  .object({
    requiredDuringSchedulingIgnoredDuringExecution: z.object({ nodeSelectorTerms: z.array(Term) }).nullish(),
  })
  .nullish();

/**
 * The value of a node label that pods are bound to, by their node selector or by an affinity of which every
 * alternative demands it. Undefined where several would do.
 */
export function demanded(
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

/**
 * The machine under one instance: the type that its pods are bound to, and the cores and memory that are reserved for
 * it. Where a container names only a limit, that is what Kubernetes reserves.
 */
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
  const [wholeCpus, { amount: ram, unit: ramUnit }] = [wholeCores(cpu), wholeGigabytes(memory)];
  return wholeCpus === 0 || ram === 0 ? named : { ...named, cpu: wholeCpus, ram, ramUnit };
}
