import type { OpsContext } from '../../../app/feature.ts';
import type { ClientDatabase } from '../../../db/connection/client.ts';
import type { ConsoleSource, Stored } from './overview.ts';

export interface ConsoleContext extends Pick<OpsContext, 'config' | 'env' | 'queues' | 'openWriter'> {
  /** In the worker's role, which sees every organization, with the console's statement timeout. */
  readonly db: ClientDatabase;
  readonly sources: readonly ConsoleSource[];
  stored(): Promise<Stored>;
  changed(): Promise<void>;
  /** The listener is called before pages learn of a change, and read again. */
  addChangeListener(listener: () => void): void;
}
