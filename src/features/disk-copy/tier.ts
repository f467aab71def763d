import type { Document } from '../../snapshot/document/document.ts';
import type { DocumentName } from '../../snapshot/document/keys.ts';
import type { ReadAt } from '../../snapshot/read/durable-copy.ts';
import { boundedBy, timeBy } from '../../snapshot/read/freshness.ts';
import type { DocumentTier } from '../../snapshot/read/tiers/tier.ts';

/** The files of the copy, as `DiskCopy` has them. */
interface CopyFiles {
  newest(id: string, version: number): Promise<number>;
  heard(id: string, version: number): void;
  given(id: string, document: Document | undefined): void;
  keep(id: string, document: Document, read: ReadAt): void;
  read(name: DocumentName): Promise<{ readonly document: Document; readonly knownAt: number } | undefined>;
}

/** The copy on disk: it answers when no other tier does, and knows what this reader gave before its last start. */
export function diskTier(copy: CopyFiles): DocumentTier {
  return {
    newest: (id, version) => copy.newest(id, version),
    heard: (id, version) => copy.heard(id, version),
    given({ id }, { document, epoch, at }) {
      copy.given(id, document);
      if (document && epoch !== undefined) copy.keep(id, document, { epoch, at });
    },
    async recall({ name, id, atLeast, stamps }) {
      const kept = await copy.read(name);
      if (!kept || kept.document.version < atLeast) return undefined;
      const { document, knownAt } = kept;
      const asOf = boundedBy(knownAt, timeBy(stamps.postgres, id, document.sources));
      return { document, tier: 'disk', knownAt, asOf };
    },
  };
}
