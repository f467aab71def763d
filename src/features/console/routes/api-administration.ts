/** What the routes of organizations, tokens, clusters and the audit log answer: types alone. See api.ts. */

import type { AuditRecord } from '../../../db/audit.ts';
import type { ClusterDetails } from '../../../db/clusters.ts';
import type { ClusterHistoryEntry } from '../../../db/runs/cluster-changes.ts';
import type { TokenPage } from '../../../db/tokens.ts';
import type { ReplacedUser, User, UserName } from '../../../db/users.ts';
import type { OperatorSummary } from '../../../domain/operator.ts';

export type { AuditTerms } from '../../../db/audit.ts';
export type { ClusterSort, ClusterTerms, FoundCluster, FoundClusters } from '../../../db/clusters.ts';
export type {
  FoundOrganization,
  FoundOrganizations,
  Organization,
  OrganizationSort,
} from '../../../db/organizations.ts';
export type { ClusterHistoryEntry } from '../../../db/runs/cluster-changes.ts';
export type { TokenSummary } from '../../../db/tokens.ts';
export type { User } from '../../../db/users.ts';
export type { OperatorSummary } from '../../../domain/operator.ts';

/** What was changed, and whether readers have been told: false when the cache is away, and they hear of it later. */
export type Published<T> = T & { readonly published: boolean };

export type TokensAnswer = TokenPage;

export interface UsersAnswer {
  readonly rows: readonly User[];
}

export interface OperatorsAnswer {
  /** By name. */
  readonly rows: readonly OperatorSummary[];
}

/** A token that was made: the only answer that ever holds the token itself. */
export interface MadeToken {
  readonly id: number;
  readonly token: string;
  readonly organization: string;
  /** Null for a token without a name. */
  readonly name: string | null;
  readonly scopes: readonly string[];
  /** RFC 3339; null for one that does not expire. */
  readonly expiresAt: string | null;
  /** The token in whose place it was made, and until when that is good: null where it is revoked. */
  readonly old?: { readonly id: number; readonly expiresAt: string | null };
}

export interface RevokedToken {
  readonly id: number;
  /** True when somebody had revoked it before. */
  readonly wasRevoked: boolean;
}

/** A person who is shown otherwise from now on; of a deleted one as nobody. */
export type ChangedUser = ReplacedUser & UserName;

export interface ClusterAnswer {
  readonly cluster: ClusterDetails;
  /** The newest first, a page of them. */
  readonly history: readonly ClusterHistoryEntry[];
  readonly hasOlder: boolean;
}

export interface AuditEntry extends AuditRecord {
  /** The slug of the organization that it is about, where the subject is a token or a person. */
  readonly organization: string | null;
}

export interface AuditAnswer {
  /** The newest first. */
  readonly rows: readonly AuditEntry[];
  readonly hasOlder: boolean;
}
