import { modulesIn } from '../../modules-in.ts';
import type { ClusterKind } from './kind.ts';

const modules = await modulesIn<{ kind: ClusterKind }>(new URL('./kinds/', import.meta.url));

export const KINDS: readonly ClusterKind[] = Object.entries(modules).map(([id, { kind }]) => {
  if (kind?.id !== id) throw new Error(`kubernetes/kinds/${id} must export a kind whose id is "${id}"`);
  return kind;
});
