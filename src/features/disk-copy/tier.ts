import type { Document } from '../../snapshot/document/document.ts';
import type { DocumentName } from '../../snapshot/document/keys.ts';
import type { DocumentReadAt } from '../../snapshot/read/durable-copy.ts';
import { boundedBy } from '../../snapshot/read/freshness.ts';
import type { DocumentTier } from '../../snapshot/read/tiers/tier.ts';

export interface StoredInCopy {
  readonly document: Document;
  /** When it was last known to be true, in milliseconds. */
  readonly knownAt: number;
  /** See `TieredResult.asOf`. */
  readonly asOf?: string | undefined;
}

/** The files of the copy, as `DiskCopy` has them. */
interface CopyFiles {
  newest(id: string, version: number): Promise<number>;
  heard(id: string, version: number): void;
  given(id: string, document: Document | undefined): void;
  keep(id: string, document: Document, read: DocumentReadAt): void;
  read(name: DocumentName): Promise<StoredInCopy | undefined>;
}

/** The copy on disk: it answers when no other tier does, and knows what this reader gave before its last start. */
export function diskTier(copy: CopyFiles): DocumentTier {
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
