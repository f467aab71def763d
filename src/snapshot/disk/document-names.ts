import type { DocumentName } from '../document/keys.ts';

/** The name that `documentId` makes this id of; undefined for any other text. */
export function nameOf(id: string): DocumentName | undefined {
  if (id === 'providers') return { kind: 'providers' };
  const [, kind, rest = ''] = /^(region|columns|clusters|token):([0-9a-f]+)$/.exec(id) ?? [];
  if (kind === 'token') return { kind, hash: rest };
  if (!/^\d+$/.test(rest)) return undefined;
  if (kind === 'region' || kind === 'columns') return { kind, regionId: Number(rest) };
  return kind === 'clusters' ? { kind, organizationId: Number(rest) } : undefined;
}
