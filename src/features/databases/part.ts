import type { ReaderContext, ReaderPart } from '../../app/feature.ts';
import type { ApiFeature } from '../../http/app.ts';
import { type DatabasesOptions, databasesReader } from './databases-reader.ts';
import { databaseOperations } from './routes.ts';

export const databasesApi =
  (options: DatabasesOptions): ApiFeature =>
  () => ({ operations: databaseOperations(databasesReader(options)) });

export const readDatabasePlans = ({ documents, market: { catalogue } }: ReaderContext): ReaderPart => ({
  api: databasesApi({ documents, catalogue }),
});
