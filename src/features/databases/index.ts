/** Plans of managed databases: operations that answer from the catalogue in memory, and a command. */
import type { Feature } from '../../app/feature.ts';
import { addDatabasesCommand } from './command-line.ts';

export const databasesFeature: Feature = {
  name: 'databases',
  read: async () => (await import('./part.ts')).readDatabasePlans,
  commands: addDatabasesCommand,
};
