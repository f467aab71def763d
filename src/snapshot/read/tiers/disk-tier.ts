import type { DiskCopy } from '../../disk/disk-copy.ts';
import { boundedBy } from '../freshness.ts';
import type { DocumentTier } from './tier.ts';

/** The copy on disk: it answers when no other tier does, and knows what this reader gave before its last start. */
export function diskTier(copy: DiskCopy): DocumentTier {
  return {
    newest: (id, version) => copy.newest(id, version),
    heard: (id, version) => copy.heard(id, version),
    given({ id }, { document, epoch, at, asOf }) {
      copy.given(id, document);
      if (document && epoch !== undefined) copy.keep(id, document, { epoch, at, asOf });
    },
    async recall({ name, atLeast }) {
      const kept = await copy.read(name);
      if (!kept || kept.document.version < atLeast) return undefined;
      const { document, knownAt, asOf } = kept;
      return { document, tier: 'disk', knownAt, asOf: boundedBy(knownAt, asOf) };
    },
  };
}
