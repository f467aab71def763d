import type { DocumentTier } from '../../snapshot/read/tiers/tier.ts';
import type { DiskCopy } from './disk-copy.ts';

/** The copy on disk: it answers when no other tier does, and knows what this reader gave before its last start. */
export function diskTier(copy: DiskCopy): DocumentTier {
  return {
    newest: (id, version) => copy.newest(id, version),
    heard: (id, version) => copy.heard(id, version),
    given({ id }, { document, epoch, at }) {
      copy.given(id, document);
      if (document && epoch !== undefined) copy.keep(id, document, { epoch, at });
    },
    async recall({ name, atLeast }) {
      const kept = await copy.read(name);
      if (!kept || kept.document.version < atLeast) return undefined;
      return { document: kept.document, tier: 'disk', knownAt: kept.knownAt };
    },
  };
}
