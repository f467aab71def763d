/** The answer of `/v1/machines/<id>` for a machine of a held batch, before and after an approval. */
import type { SourceConfig } from '../../config/config.ts';
import type { Database, Store } from '../../db/connection/connect.ts';
import { and, eq, isNull } from '../../db/connection/drizzle.ts';
import { machines, regions } from '../../db/schema.ts';
import { machineElements } from '../../snapshot/document/build.ts';
import { loadContent } from '../../snapshot/document/load.ts';
import type { PreviewedCatalogue } from '../../sync/catalogue/catalogue.ts';
import type { PreviewRow } from '../../sync/catalogue/preview.ts';
import { providerOf } from '../run-source.ts';

export type MachineAnswer = string | null;

export interface HeldDocument {
  /** Null for a new machine: it gets its id when it is stored. */
  readonly id: number | null;
  readonly now: MachineAnswer;
  /** New ids are null. */
  readonly after: MachineAnswer;
}

/** Builds both answers with the functions that build published documents. @param preview has this row */
export async function heldDocument(
  store: Store,
  source: SourceConfig & { readonly kind: 'catalogue' },
  preview: PreviewedCatalogue,
  row: PreviewRow,
): Promise<HeldDocument> {
  const provider = await providerOf(store, source);
  const place = await machinePlace(store.db, provider.id, row.regionCode, row.name);
  const id = place?.machineId ?? null;
  const now = place && id !== null ? await publishedNow(store, place.regionId, id) : null;
  const { shape, newPrice } = row;
  if (shape === null || newPrice === null) return { id, now, after: null };
  const region = {
    id: place?.regionId ?? NOT_GIVEN,
    code: row.regionCode,
    name: preview.regions[row.regionCode] ?? place?.regionName ?? row.regionCode,
    version: 0,
    provider: { id: provider.id, name: provider.name },
  };
  const [, json] = machineElements(region)({
    id: id ?? NOT_GIVEN,
    name: row.name,
    price: newPrice,
    ...shape,
  });
  return { id, now, after: id !== null && place ? json : withoutIds(json) };
}

interface MachinePlace {
  readonly regionId: number;
  readonly regionName: string;
  readonly machineId: number | null;
}

async function machinePlace(
  db: Database,
  providerId: number,
  regionCode: string,
  name: string,
): Promise<MachinePlace | undefined> {
  const [place] = await db
    .select({ regionId: regions.id, regionName: regions.name, machineId: machines.id })
    .from(regions)
    .leftJoin(machines, and(eq(machines.regionId, regions.id), eq(machines.name, name)))
    .where(
      and(eq(regions.providerId, providerId), eq(regions.code, regionCode), isNull(regions.organizationId)),
    );
  return place;
}

/** No machine and no region has this id. */
const NOT_GIVEN = 0;

async function publishedNow(store: Store, regionId: number, machineId: number): Promise<MachineAnswer> {
  const document = await loadContent(store.sql, { kind: 'region', regionId });
  const place = document?.index.get(String(machineId));
  return document && place ? document.body.subarray(...place).toString() : null;
}

const withoutIds = (json: string): string =>
  JSON.stringify(JSON.parse(json), (key, value) => (key === 'id' && value === NOT_GIVEN ? null : value));
