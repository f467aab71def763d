/** The types of the client equal those of the answers: a difference does not compile, or fails here. */
import { describe, expect, it } from 'vitest';
import type {
  Alternatives,
  Cluster,
  ClusterCost,
  CostHistory,
  Costs,
  Machine,
  MachineTerms,
  MachineWithFacts,
  Price,
  Provider,
  Recommendations,
  RegionPrices,
  SearchPage,
} from '../../packages/client/src/index.ts';
import type { ClusterDocument } from '../../src/domain/cluster.ts';
import type { MachineDocument, MachineFactsDocument } from '../../src/domain/machine.ts';
import type {
  AlternativesDocument,
  CostDocument,
  CostHistoryDocument,
  CostsDocument,
  RegionPricesDocument,
  TermsDocument,
} from '../../src/features/costs/schemas.ts';
import type { RecommendDocument, SearchDocument } from '../../src/features/search/schema.ts';
import { clusterSchema, machineSchema, priceSchema, providerSchema } from '../../src/http/schemas.ts';
import type { ProviderListing } from '../../src/snapshot/document/build.ts';

/** Without `readonly`, which does not matter for JSON. */
type Plain<T> = { -readonly [K in keyof T]: Plain<T[K]> };
type Identical<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type Same<A, B> = Identical<Plain<A>, Plain<B>>;

const SAME: [
  Same<Machine, MachineDocument>,
  Same<Cluster, ClusterDocument>,
  Same<Provider, ProviderListing>,
  Same<MachineWithFacts, MachineFactsDocument>,
  Same<SearchPage<Partial<MachineWithFacts>>, SearchDocument>,
  Same<Recommendations, RecommendDocument>,
  Same<ClusterCost, CostDocument>,
  Same<Costs, CostsDocument>,
  Same<CostHistory, CostHistoryDocument>,
  Same<Alternatives, AlternativesDocument>,
  Same<MachineTerms, TermsDocument>,
  Same<RegionPrices, RegionPricesDocument>,
] = [true, true, true, true, true, true, true, true, true, true, true, true];

/** All fields of a type, or this does not compile. */
type Fields<T> = Readonly<Record<keyof T, true>>;

const MACHINE: Fields<Machine> = {
  id: true,
  name: true,
  ram: true,
  cpu: true,
  price: true,
  ram_unit: true,
  provider: true,
  region: true,
};
const CLUSTER: Fields<Cluster> = {
  name: true,
  slug: true,
  region: true,
  provider: true,
  status: true,
  shards: true,
  replicas: true,
  user: true,
  machine: true,
  disks: true,
  created_at: true,
};
const PROVIDER: Fields<Provider> = { id: true, name: true, regions: true };
const PRICE: Fields<Price> = { price: true, from: true, to: true };

describe('the types of the client', () => {
  it.each([
    ['Machine', MACHINE, machineSchema],
    ['Cluster', CLUSTER, clusterSchema],
    ['Provider', PROVIDER, providerSchema],
    ['Price', PRICE, priceSchema],
  ])('%s has the fields of the schema', (_, fields, schema) => {
    expect(Object.keys(schema.shape)).toEqual(Object.keys(fields));
  });

  it('equal those of the domain', () => {
    expect(SAME).not.toContain(false);
  });
});
