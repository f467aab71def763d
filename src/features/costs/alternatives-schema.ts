import { z } from 'zod';
import type { MachineFactsDocument } from '../../domain/machine.ts';
import type { ShownAmount } from '../../domain/prices/cost.ts';
import { documented, machineWithFactsSchema, object, orNull } from '../../http/schemas.ts';
import {
  type CostedIdentity,
  identitySchema,
  type MachinePart,
  machinePartSchema,
  questionFields,
  type ShownPrice,
  type ShownQuestion,
  shownPriceFields,
} from './schema.ts';

/** The machine compared with that of the cluster. */
export interface Comparison {
  readonly cpu_ratio: number;
  readonly memory_ratio: number;
  readonly same_architecture: boolean | null;
  readonly same_cpu_kind: boolean | null;
  readonly local_disk_difference: number | null;
}

export interface AlternativeShown extends ShownPrice, ShownAmount {
  readonly machine: MachineFactsDocument;
  readonly saving_per_month: number;
  readonly compared: Comparison;
}

export interface AlternativesDocument extends Pick<ShownQuestion, 'term' | 'prices'> {
  readonly cluster: CostedIdentity;
  readonly machine: MachinePart;
  readonly same_region: readonly AlternativeShown[];
  readonly same_provider: readonly AlternativeShown[];
  readonly anywhere: readonly AlternativeShown[];
}

const ratio = (description: string) => documented(z.number(), { description });

const alternative = object<AlternativeShown>({
  machine: machineWithFactsSchema,
  ...shownPriceFields,
  per_minute: documented(z.number(), { description: 'Of the machines of all nodes' }),
  per_month: documented(z.number(), { description: 'Of the machines of all nodes in a month of 730 hours' }),
  saving_per_month: documented(z.number(), {
    description: 'The machines of the cluster cost this much more',
  }),
  compared: object<Comparison>({
    cpu_ratio: ratio('Its virtual CPUs divided by those of the machine of the cluster'),
    memory_ratio: ratio('Its memory divided by that of the machine of the cluster, both in bytes'),
    same_architecture: orNull(z.boolean(), 'True if both have the same architecture; null if one is unknown'),
    same_cpu_kind: orNull(
      z.boolean(),
      'True if both have the same kind of cpu, shared or dedicated; null if one is unknown',
    ),
    local_disk_difference: orNull(z.number(), 'GB of local disk that it has more; null if one is unknown'),
  }),
});

const list = (where: string) =>
  documented(z.array(alternative), { description: `${where}, the largest saving first` });

export const alternativesSchema = object<AlternativesDocument>({
  cluster: identitySchema,
  ...questionFields,
  machine: machinePartSchema,
  same_region: list('In the region of the machine'),
  same_provider: list('In all regions of its provider'),
  anywhere: list('In all regions of all providers'),
});
