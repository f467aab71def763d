import type { ClusterRules } from '../sources/cluster-rules.ts';
import type { CredentialProvider } from '../sources/credentials/provider.ts';
import type { adapter as endoflife } from '../sources/lifecycles/endoflife.ts';
import type { adapter as ecb } from '../sources/rates/ecb.ts';
import type { ReadOptions } from '../sources/schema/options.ts';
import type { AnyCatalogueAdapter, ClusterAdapter } from '../sources/source.ts';
import type { GuardLimits } from '../sync/guards.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface SourceBase {
  /** Identifies the source in the database, in logs and on the command line. */
  readonly id: string;
  readonly url: string;
  readonly credentials: CredentialProvider;
  readonly redirectsTo?: readonly string[];
  /** For adapters that use a key in addition to credentials. */
  readonly apiKey?: string;
  readonly schedule: string;
  readonly maxAge: number;
  readonly limits: GuardLimits;
}

export type SourceConfig =
  | (SourceBase & {
      readonly kind: 'catalogue';
      readonly adapter: AnyCatalogueAdapter;
      readonly options?: ReadOptions;
    })
  | (SourceBase & {
      readonly kind: 'clusters';
      readonly adapter: ClusterAdapter;
      readonly rules: ClusterRules;
      readonly options?: ReadOptions;
    })
  | (SourceBase & { readonly kind: 'rates'; readonly adapter: typeof ecb })
  | (SourceBase & { readonly kind: 'lifecycles'; readonly adapter: typeof endoflife });
