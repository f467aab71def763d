import type { ReplicaServers } from '../../app/feature.ts';
import { readReplicaState } from './state.ts';

/** Why the primary cannot be read for what the replica lacks; undefined if it can. @throws Unavailable */
export async function replicaMisfit({ replica, primary }: ReplicaServers): Promise<string | undefined> {
  const [ofPrimary, ofReplica] = await Promise.all([
    primary.reads.look(readReplicaState),
    replica.reads.look(readReplicaState),
  ]);
  if (ofPrimary.isStandby)
    return `${primary.setting} leads to a standby: what the replica lacks cannot be read from it; name the primary in DATABASE_URL`;
  if (ofPrimary.lineage !== ofReplica.lineage)
    return `${replica.setting} leads to another database than ${primary.setting}, or to a replica from before a new lineage: it is not read`;
  return undefined;
}
