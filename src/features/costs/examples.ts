/** The examples of the API's description. */
import { CLUSTER_EXAMPLE } from '../../http/routes/clusters.ts';
import { MACHINE_WITH_FACTS_EXAMPLE as MACHINE } from '../../http/routes/machines.ts';
import type { AlternativesDocument } from './alternatives-schema.ts';
import type { CostDocument, CostHistoryDocument, CostsDocument } from './schema.ts';

const { name, slug, status, provider, region, machine } = CLUSTER_EXAMPLE;
const AMOUNT = { per_minute: 0.0048, per_month: 210.24 };
const SUM = { ...AMOUNT, known_per_minute: 0.0048, known_per_month: 210.24, complete: true };
const PRICE = {
  price: 0.0016,
  list_price: 0.0016,
  price_source: 'list',
  entry: null,
  monthly_cap: null,
} as const;
export const COST_EXAMPLE: CostDocument = {
  cluster: { slug, name, status, provider, region },
  term: 'on_demand',
  prices: 'own',
  at: null,
  shards: 3,
  replicas: 1,
  machine: {
    ...machine,
    name: 'm5.large',
    in_catalogue: true,
    ...PRICE,
    count: 3,
    ...AMOUNT,
    reason: null,
  },
  disks: [],
  ...SUM,
};
const TOTAL = { clusters: 1, ...SUM };
export const LIST_EXAMPLE: CostsDocument = {
  term: 'on_demand',
  prices: 'own',
  at: null,
  total: TOTAL,
  providers: [{ provider, ...TOTAL }],
  regions: [{ provider, region, ...TOTAL }],
  clusters: [
    {
      slug,
      name,
      provider,
      region,
      machine: { id: machine.id, name: 'm5.large' },
      nodes: 3,
      ...SUM,
    },
  ],
  next: null,
};
export const HISTORY_EXAMPLE: CostHistoryDocument = {
  cluster: COST_EXAMPLE.cluster,
  term: 'on_demand',
  prices: 'own',
  steps: [
    {
      from: '2026-03-01T04:17:02.114392Z',
      to: null,
      ...PRICE,
      ...SUM,
    },
  ],
};
export const ALTERNATIVES_EXAMPLE: AlternativesDocument = {
  cluster: COST_EXAMPLE.cluster,
  term: 'on_demand',
  prices: 'own',
  machine: COST_EXAMPLE.machine,
  same_region: [],
  same_provider: [],
  anywhere: [
    {
      machine: { ...MACHINE, ...PRICE, price: MACHINE.price, list_price: MACHINE.price },
      per_minute: 0.000311375,
      per_month: 13.638225,
      saving_per_month: 196.601775,
      compared: {
        cpu_ratio: 1,
        memory_ratio: 0.931,
        same_architecture: false,
        same_cpu_kind: null,
        local_disk_difference: 40,
      },
    },
  ],
};
