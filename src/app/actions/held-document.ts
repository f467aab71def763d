/** What readers are told of a machine of a held batch: now, and if the batch were approved. */
import type { SourceConfig } from '../../config/config.ts';
import type { Store } from '../../db/connection/connect.ts';
import { machinePlace } from '../../db/machines.ts';
import type { PreviewRow } from '../../db/sync/catalogue/diff.ts';
import { machineElements } from '../../snapshot/document/build.ts';
import { loadContent } from '../../snapshot/document/load.ts';
import type { PreviewedCatalogue } from '../../sync/catalogue/catalogue.ts';
import { providerOf } from '../run-source.ts';

/** An answer of `/v1/machines/<id>`: the body as readers get it, or null where that is a 404. */
export type MachineAnswer = string | null;

export interface HeldDocument {
  /** The machine's id; null for one that gets its id when it is stored. */
  readonly id: number | null;
  readonly now: MachineAnswer;
  /** Ids that are not given yet are null in it. */
  readonly after: MachineAnswer;
}

/**
 * Both answers come from the functions that make the published documents.
 * @param preview of the batch, with this row
 */
export async function heldDocument(
  store: Store,
  source: SourceConfig & { readonly kind: 'catalogue' },
  preview: PreviewedCatalogue,
  row: PreviewRow,
): Promise<HeldDocument> {
  const provider = await providerOf(store, source);
  const place = await machinePlace(store.sql, provider.id, row.regionCode, row.name);
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

/** No machine and no region has this id. */
const NOT_GIVEN = 0;

async function publishedNow(store: Store, regionId: number, machineId: number): Promise<MachineAnswer> {
  const document = await loadContent(store.sql, { kind: 'region', regionId });
  const place = document?.index.get(String(machineId));
  return document && place ? document.body.subarray(...place).toString() : null;
}

const withoutIds = (json: string): string =>
  JSON.stringify(JSON.parse(json), (key, value) => (key === 'id' && value === NOT_GIVEN ? null : value));
