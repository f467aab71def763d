import type { OpsContext } from '../../../app/feature.ts';
import type { Sql } from '../../../db/connection/client.ts';
import type { ConsoleSource, Stored } from './overview.ts';

/** What the routes of the console share. */
export interface ConsoleContext
  extends Pick<OpsContext, 'config' | 'env' | 'queues' | 'syncQueue' | 'openWriter' | 'openAlerts'> {
  /** In the worker's role, which sees every organization, with the console's statement timeout. */
  readonly sql: Sql;
  /** The configured sources. */
  readonly sources: readonly ConsoleSource[];
  /** Returns the stored state of all sources. */
  stored(): Promise<Stored>;
  /** Notifies open pages of a change. */
  changed(): Promise<void>;
}
