import { expect } from 'vitest';
import { storeDecided } from '../../src/app/actions/batch.ts';
import { type Config, readConfig, type SourceConfig } from '../../src/config/config.ts';
import { type BatchRecord, pendingBatches } from '../../src/db/held-batches.ts';
import type { SyncResult } from '../../src/sync/pipeline.ts';
import { OPERATOR, openScene, type Scene } from '../sync/scene.ts';

export const LINODE = { source: 'linode', provider: { id: 6, name: 'Linode' } };

/** A scene with the configured sources `linode` and `clusters`, for an operator's decisions about batches. */
export interface HeldScene extends Scene {
  readonly config: Config;
  configured(id: string): SourceConfig;
  onlyPending(): Promise<BatchRecord>;
  approve(id: string, batch: number): Promise<SyncResult>;
}

export async function openHeldScene(): Promise<HeldScene> {
  const scene = await openScene();
  const config = readConfig({
    DATABASE_URL: scene.db.url,
    REDIS_URL: 'redis://127.0.0.1:1',
    LINODE_URL: 'http://127.0.0.1:1',
    CLUSTERS_URL: 'http://127.0.0.1:1',
  });
  const configured = (id: string) =>
    config.sources.find((source) => source.id === id) ?? expect.unreachable(`${id} is configured`);
  return {
    ...scene,
    config,
    configured,
    async onlyPending() {
      const [batch, ...others] = await pendingBatches(scene.store.db);
      expect(others).toEqual([]);
      return batch ?? expect.unreachable('nothing is held');
    },
    approve: (id, batch) =>
      storeDecided(config, scene.store, configured(id), {
        kind: 'approve',
        batchId: batch,
        decider: OPERATOR,
      }),
  };
}
