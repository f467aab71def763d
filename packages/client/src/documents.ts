/** Names of parts of answers, and of parameters as callers state them. `api.ts` has the answers. Prices are per minute, in `Answer.currency`. */
import type {
  ClusterCost,
  ExportFile,
  ExportKarpenterQuery,
  ExportOpenCostQuery,
  FindFirstAvailableQuery,
  FoundMachine,
  GetClusterCostQuery,
  GetDatabaseQuery,
  ListAlternativesQuery,
  ListChangesQuery,
  ListClusterCostsQuery,
  ListCostsQuery,
  ListDatabasesQuery,
  ListLifecycleQuery,
  ListMachineTermsQuery,
  Machine,
  MachineTerm,
  MachineWithFacts,
  RecommendMachinesQuery,
  SearchAnswer,
  SearchMachinesQuery,
} from './api.ts';

export type Unit = Machine['ram_unit'];
export type ExportName = ExportFile['file'];
export type PriceTerm = MachineTerm['term'];
export type CostedCluster = ClusterCost['cluster'];

/** A machine of a search. */
export type SearchedMachine = MachineWithFacts & Pick<FoundMachine, 'available_share'>;

/** A page of machines with the requested fields. */
export interface SearchPage<Found = SearchedMachine> extends Omit<SearchAnswer, 'machines'> {
  readonly machines: readonly (Found & Pick<FoundMachine, 'term' | 'price_source' | 'list_price'>)[];
}

/** Parameters of a request. One that is undefined is not sent. */
type Question<Query> = { readonly [Name in keyof Query]: Query[Name] | undefined };

export type SearchQuestion<Field extends keyof SearchedMachine = keyof SearchedMachine> = Omit<
  Question<SearchMachinesQuery>,
  'fields'
> & {
  /** The fields of each machine; all by default. */
  readonly fields?: readonly Field[] | undefined;
};
export type RecommendQuestion = Question<RecommendMachinesQuery> &
  Pick<RecommendMachinesQuery, 'cpu' | 'ram'>;
/** Conditions that a machine must meet, in searches and recommendations. */
export type MachineFilter = Pick<
  Question<SearchMachinesQuery>,
  keyof SearchMachinesQuery & keyof RecommendMachinesQuery
>;
export type TermsQuestion = Question<ListMachineTermsQuery>;
export type FirstAvailableQuestion = Question<FindFirstAvailableQuery> & Pick<FindFirstAvailableQuery, 'ids'>;
export type DatabasesQuestion = Question<ListDatabasesQuery>;
export type DatabaseQuestion = Question<GetDatabaseQuery>;
export type KarpenterQuestion = Question<ExportKarpenterQuery> &
  Pick<ExportKarpenterQuery, 'provider' | 'region'>;
export type LifecycleQuestion = Question<ListLifecycleQuery>;
export type OpenCostQuestion = Question<ExportOpenCostQuery> & Pick<ExportOpenCostQuery, 'provider'>;
export type CostQuestion = Question<GetClusterCostQuery>;
export type CostsQuestion = Question<ListCostsQuery>;
export type CostHistoryQuestion = Question<ListClusterCostsQuery>;
export type AlternativesQuestion = Question<ListAlternativesQuery>;
export type ChangesQuestion = Question<ListChangesQuery>;
