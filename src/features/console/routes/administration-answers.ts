import type { TokenPage } from '../../../db/tokens.ts';
import type { ReplacedUser, User, UserName } from '../../../db/users.ts';
import type { Lifecycle } from '../../../domain/lifecycle.ts';
import type { OperatorSummary } from '../../../domain/operator.ts';
import type { AuditRecord } from '../queries/audit.ts';
import type { ClusterHistoryEntry } from '../queries/changes.ts';
import type { ClusterDetails } from '../queries/clusters.ts';

export type { Organization } from '../../../db/organizations.ts';
export type { AuditTerms } from '../queries/audit.ts';
export type { ClusterSort, ClusterTerms, FoundCluster, FoundClusters } from '../queries/clusters.ts';
export type { FoundOrganization, FoundOrganizations, OrganizationSort } from '../queries/organizations.ts';

import type { ClusterCosts } from './costs/cost-answers.ts';

export type { TokenSummary } from '../../../db/tokens.ts';
export type { User } from '../../../db/users.ts';
export type { OperatorSummary } from '../../../domain/operator.ts';
export type { ClusterHistoryEntry } from '../queries/changes.ts';

/** A change. `published` is false if the cache is down, and is updated later. */
export type Published<T> = T & { readonly published: boolean };

export type TokensAnswer = TokenPage;

export interface UsersAnswer {
  readonly rows: readonly User[];
}

export interface OperatorsAnswer {
  readonly rows: readonly OperatorSummary[];
}

/** A new token. No other answer contains the token itself. */
export interface MadeToken {
  readonly id: number;
  readonly token: string;
  readonly organization: string;
  /** Null for a token without a name. */
  readonly name: string | null;
  readonly scopes: readonly string[];
  readonly expiresAt: string | null;
  /** The rotated token, and its expiry; null if it is revoked. */
  readonly old?: { readonly id: number; readonly expiresAt: string | null };
}

export interface RevokedToken {
  readonly id: number;
  readonly wasRevoked: boolean;
}

/** A person under the new name. Both names of a deleted person are empty. */
export type ChangedUser = ReplacedUser & UserName;

export interface ClusterAnswer {
  readonly cluster: ClusterDetails;
  readonly lifecycle: Lifecycle;
  /** Its cost now; null if it is retired. */
  readonly cost: ClusterCosts | null;
  readonly history: readonly ClusterHistoryEntry[];
  readonly hasOlder: boolean;
}

export interface AuditEntry extends AuditRecord {
  /** The slug of the organization of a token or a person. */
  readonly organization: string | null;
}

export interface AuditAnswer {
  readonly rows: readonly AuditEntry[];
  readonly hasOlder: boolean;
}
